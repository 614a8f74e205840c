// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"io"
	"time"
)

// Table writes results as a table of Markdown, those of a scenario under each other.
func Table(w io.Writer, results []Result) {
	fmt.Fprintln(w, "| scenario | style | ran | last start, s | mean wait, s | room idle, s | held, slot·s | attempts |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	before := ""
	for _, r := range results {
		name := r.Scenario
		if name == before {
			name = ""
		}
		before = r.Scenario
		fmt.Fprintf(w, "| %s | %s | %d of %d | %s | %.1f | %.1f | %s | %s |\n", name, r.Style, r.Ran, r.All, last(r), r.MeanWait.Seconds(), r.Idle.Seconds(),
			known(r.Held >= 0, fmt.Sprintf("%.0f", r.Held.Seconds())), known(r.Attempts >= 0, fmt.Sprint(r.Attempts)))
	}
}

func last(r Result) string {
	if r.Ran == 0 {
		return "never"
	}
	return fmt.Sprintf("%.1f", r.Last.Round(100*time.Millisecond).Seconds())
}

func known(is bool, text string) string {
	if !is {
		return ""
	}
	return text
}
