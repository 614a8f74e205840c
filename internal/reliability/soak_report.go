// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Held reports whether every invariant held and memory was flat.
func (r SoakReport) Held() bool { return len(r.Wrong) == 0 && r.Lost == 0 && r.Memory.Flat }

// Write writes the report as json, or as markdown for people.
func (r SoakReport) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "markdown":
		return r.markdown(w)
	}
	return fmt.Errorf("output format %q is unknown; there are json and markdown", format)
}

func (r SoakReport) markdown(w io.Writer) error {
	out := func(format string, args ...any) { fmt.Fprintf(w, format, args...) }
	out("%s, %.0f minutes at %d pods/s, seed %d: %d pods created, %d bound, %d deleted, %d lost; %d faults; ",
		r.Scheduler, r.Seconds/60, r.Rate, r.Seed, r.Created, r.Bound, r.Deleted, r.Lost, len(r.Faults))
	if len(r.Wrong) == 0 {
		out("every invariant held.\n")
	} else {
		out("%d invariants did not hold.\n", len(r.Wrong))
	}
	m := r.Memory
	out("First and last third of %d looks at the leader (at most %d in a row at one process): heap after collection %.1f -> %.1f MiB, goroutines %d -> %d: ",
		m.Minutes, m.OfOne, m.FirstHeapMiB, m.LastHeapMiB, m.FirstGoroutines, m.LastGoroutines)
	if m.Flat {
		out("flat.\n")
	} else {
		out("NOT flat.\n")
	}
	for _, wrong := range r.Wrong {
		out("- %s\n", wrong)
	}
	out("\n| minute | created | bound | waiting | oldest, s | heap, MiB | goroutines | starts | wrong |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, m := range r.Minutes {
		out("| %.1f | %d | %d | %d | %.0f | %.1f | %d | %d | %d |\n", m.Minute, m.Created, m.Bound, m.Waiting, m.Longest, m.HeapMiB, m.Goroutines, m.Starts, m.Wrong)
	}
	times := map[string]int{} // fault -> how often
	for _, f := range r.Faults {
		times[f.What]++
	}
	out("\n| fault | times |\n|---|---|\n")
	for _, what := range slices.Sorted(maps.Keys(times)) {
		out("| %s | %d |\n", what, times[what])
	}
	return nil
}
