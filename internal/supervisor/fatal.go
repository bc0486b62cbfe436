package supervisor

import (
	"runtime"
	"strings"
)

// fatalComponent is the component that a fatal exit inside Kubernetes belongs
// to: klog calls the exit hook on the goroutine that failed, whose stack tells
// which program's code it runs. Code that both use is the API server's.
func fatalComponent() string {
	callers := make([]uintptr, 256)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		switch {
		case strings.Contains(frame.Function, "kube-controller-manager"),
			strings.Contains(frame.Function, "k8s.io/kubernetes/pkg/controller/"):
			return ControllerManager
		case !more:
			return APIServer
		}
	}
}
