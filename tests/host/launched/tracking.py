class Tracker:
    def log_metrics(self, metrics, step):
        pass
