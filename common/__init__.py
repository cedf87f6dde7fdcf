"""The ground floor: tools that every part of the lab needs. Imports nothing of ours."""
