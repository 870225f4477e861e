"""What a batch makes final, and the state after it.

In: the manifest before, what the batch's tasks report. Out: watermark, what expires, the next manifest. What must hold:
a pure function of these, so that a batch that is repeated comes to the same.
"""
