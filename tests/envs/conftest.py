import os

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # human rendering without a display
