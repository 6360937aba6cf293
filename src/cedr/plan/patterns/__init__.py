"""Event patterns as data, and what can be known of them before any event arrives.

tree      the forms and conditions a pattern is made of
spec      a pattern with its outputs and the streams it is about
rules     which patterns are allowed
outputs   what OUTPUT can name
keys      the attributes by which the events of a match agree
parts     how far each part looks, and where each condition is evaluated
sharing   the parts that are the same, so that one is computed for all of them
explain   the text of a pattern in `explain`

The plan node of a pattern is `cedr.plan.nodes.Match`; `cedr.operators.patterns` evaluates it.
"""
