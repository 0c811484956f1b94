"""A callback of scikit-learn's protocol that remembers what it was called for."""


class Recorder:
    """Write down the calls; stop after `stop_after` subtasks.

    ``fitted`` are the estimators as if the fit had stopped after each subtask.
    """

    max_propagation_depth = None

    def __init__(self, stop_after=None):
        self.calls, self.stop_after, self.fitted = [], stop_after, []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        assert estimator is not None
        self.calls.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.calls.append(("end", context.task_name, context.task_id))
        if context.task_name == "fit":
            return False
        self.fitted.append(fitted_estimator)
        return len(self.fitted) == self.stop_after
