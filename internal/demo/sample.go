package demo

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// sampleTask is the Task task-sample-NUMBER: its spec is a function of the
// number and of the day, so a second run on the same day changes nothing. Every
// fourth one is finished. taskState is left alone otherwise, so a Task that the
// user finished stays so.
func sampleTask(number int, namespace string, now time.Time) *unstructured.Unstructured {
	spec := map[string]any{
		"priority": int64(number % (taskv1.MaxPriority + 1)),
		"details":  sampleDetails(number),
		"deadline": sampleDeadline(number, now).Format(time.RFC3339),
	}
	if number%4 == 0 {
		spec["taskState"] = string(taskv1.TaskStateFinished)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": taskv1.GroupVersion().String(),
		"kind":       "Task",
		"metadata": map[string]any{
			"name":      fmt.Sprintf("task-sample-%d", number),
			"namespace": namespace,
			"labels":    map[string]any{partOfLabel: partOfValue},
		},
		"spec": spec,
	}}
}

// sampleDeadline is an hour of one of the next four weeks' days.
func sampleDeadline(number int, now time.Time) time.Time {
	today := now.UTC().Truncate(24 * time.Hour)
	return today.AddDate(0, 0, 1+number%28).Add(time.Duration(7+number*5%12) * time.Hour)
}

// sampleDetails combines sentences; lists of 8, 9, 7 and 5 parts give 2,520
// different texts, and the number at the end makes every one unique.
func sampleDetails(number int) string {
	works := []string{
		"Replace the worn brake pads of", "Write the inspection report for", "Order spare parts for",
		"Repair the leaking pump of", "Take photographs for the catalogue page of", "Renew the insurance of",
		"Clean and lubricate", "Find a buyer for",
	}
	things := []string{
		"the blue delivery van", "the hydraulic press in hall 2", "the forklift at the loading ramp",
		"the coffee machine on the third floor", "the old lathe", "the server rack in the basement",
		"the sailing boat Albatros", "the greenhouse heating", "the printing machine",
	}
	reasons := []string{
		"The customer has asked for it twice.", "It was noted in the last audit.", "The warranty ends this month.",
		"The night shift reported a strange noise.", "The technician is on site that day anyway.",
		"Without it the certificate can't be renewed.", "The budget for it is approved.",
	}
	hints := []string{
		"The keys are at the reception.", "Call the workshop before you go.", "Bring the measuring device along.",
		"Ask Maria for the drawings.", "The invoice goes to the main office.",
	}
	pick := func(list []string, step int) string { return list[number/step%len(list)] }
	details := fmt.Sprintf("%s %s. %s", pick(works, 1), pick(things, 1), pick(reasons, 1))
	if number%3 != 0 {
		details += " " + pick(hints, 2)
	}
	return fmt.Sprintf("%s (work order %05d)", details, number)
}
