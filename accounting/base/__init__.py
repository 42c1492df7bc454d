"""Helpers for every room: arrays, errors, validation, ball arithmetic, threads and deadlines."""
