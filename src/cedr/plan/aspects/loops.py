"""Why nodes cannot be in the body of a loop."""

MOVES = "it moves lifetimes, so a row could be derived before what it comes from; use it on the inputs, before the loop"
WAITS = "it waits until the loop is done, and the loop waits for it; use it after the loop"
HIDES = "it emits a row once however often it is derived, so that rows which derive each other would never go away"
