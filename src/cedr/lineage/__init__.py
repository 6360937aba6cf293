"""Lineage: which events made a match, and what prevented one.

`Stream.why` and `Stream.why_not` run the query over data at hand, note what its pattern was given, and look at it again
by the definitions of `cedr.reference.patterns`. So an answer is a proof that can be read, not a log of what some code
did. It is for looking closely at little: what is evaluated again are events of the same key, near those in question.

    observed     the query run once, with the events its pattern was given and the matches it emitted
    definition   the pattern and its conditions as the reference has them
    nearby       the events that can matter for some given ones, as instances
    selection    what became of a match that selection and consumption had to decide about
    diagnosis    the place in a pattern where given events fail, as a `reasons.Reason`
    rendering    events, instances and conditions as text
"""
