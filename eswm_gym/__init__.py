"""Gymnasium worlds and a pretrained spatial world model."""
