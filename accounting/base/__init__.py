"""What every room may use: arrays, errors, validation, ball arithmetic, threads and deadlines."""
