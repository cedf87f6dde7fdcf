"""The ground floor: tools that every part of the lab needs. Imports no other room."""
