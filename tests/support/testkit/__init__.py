"""What tests share: scripted servers, real servers in venvs of their own, waiting without sleeping."""
