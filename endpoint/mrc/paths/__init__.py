"""EVs: their states and health, how they are probed, and which one the next packet takes."""
