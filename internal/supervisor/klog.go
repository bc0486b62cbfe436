package supervisor

import (
	"fmt"
	"strconv"

	"k8s.io/klog/v2"
)

// setKlogVerbosity makes Kubernetes log in more detail: two of klog's levels
// for each of ours, which is how far apart its conventions put "useful" (2) and
// "debug" (4). klog has one verbosity for the whole process.
func setKlogVerbosity(verbosity int) error {
	var level klog.Level
	if err := level.Set(strconv.Itoa(2 * verbosity)); err != nil {
		return fmt.Errorf("setting the verbosity of Kubernetes: %w", err)
	}
	return nil
}
