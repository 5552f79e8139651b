def median(values):
    """The middle of `values`; of an even number, the mean of the two in the middle."""
    ordered = values.sort()
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
