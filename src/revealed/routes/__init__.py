"""Road networks and goals: links are states, the turns at a link's end its actions, and every trip has its own goal."""
