"""Headless Chromium, screenshots, and the traces shown in them."""
