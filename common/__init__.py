"""The ground floor: what every part of the lab needs and none of them is about. Imports nothing of ours."""
