"""How calibration and comparison are shown: as text, as JSON, as a picture."""
