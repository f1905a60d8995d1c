"""Draw docs/images/fit_report.png: parts of the report of a fit, as Chromium shows them.

Obstacleworld, 500 walks of its expert, features relative to an obstacle. Tables, the search and the diagnostics are
hidden, to keep the picture small.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops

import revealed as rv
from revealed.fit_report import build_fit_report

TARGET = Path(__file__).parents[1] / "docs" / "images" / "fit_report.png"
HIDDEN = "nav, #search, #diagnostics, #further, #choices > *:not(h2):not(figure), .scroll table { display: none }"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def page() -> str:
    world = rv.environments.obstacleworld()
    features = np.asarray(world.features)[:, [0, 2]] * 1.0
    reward = rv.LinearReward(features, names=["path", "goal"])
    fit = rv.NFXP(reward).fit(world.mdp, world.demonstrate(500, seed=0))
    cells = np.arange(256)
    places = np.column_stack([cells % 16, 15 - cells // 16])
    return build_fit_report(fit, coordinates=places).replace("</style>", HIDDEN + "</style>")


def photograph(html: str, folder: Path) -> Image.Image:
    browser = next(path for name in BROWSERS if (path := shutil.which(name)))
    (folder / "page.html").write_text(html, encoding="utf-8")
    size = ["--window-size=1000,3000", f"--screenshot={folder / 'page.png'}"]
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *size]
    subprocess.run([browser, *options, (folder / "page.html").as_uri()], check=True, capture_output=True)
    return Image.open(folder / "page.png").convert("RGB")


def cropped(picture: Image.Image) -> Image.Image:
    """Without the empty part below."""
    blank = Image.new("RGB", picture.size, picture.getpixel((0, picture.height - 1)))  # pyright: ignore[reportArgumentType]
    box = ImageChops.difference(picture, blank).getbbox() or (0, 0, *picture.size)
    return picture.crop((0, 0, picture.width, min(picture.height, box[3] + 20)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        cropped(photograph(page(), Path(folder))).quantize(256).save(TARGET, optimize=True)
    print(f"wrote {TARGET}")
