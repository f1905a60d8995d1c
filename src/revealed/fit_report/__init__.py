"""The report of a fit: one HTML file with the estimates, how well they predict, how they were found, and what to doubt.

It asks for nothing from elsewhere and runs no script, and whatever came with the data is escaped. A chapter that
cannot be made is a note in its place: the fit may have cost hours.
"""

from revealed.fit_report.whole import build_fit_report, python_lines, shell_lines, write_fit_report

__all__ = ["build_fit_report", "python_lines", "shell_lines", "write_fit_report"]
