"""Whether what raters say can be trusted: calibration, agreement, drift, bias."""
