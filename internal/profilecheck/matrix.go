// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"fmt"
	"io"
	"slices"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// Right counts the results in which the injected cause is named first. Wrong counts those in which another one is;
// neither counts "not known" and failures.
func Right(results []Result) (right, wrong int) {
	for i := range results {
		switch named := results[i].Named(); {
		case named == results[i].Injected.String():
			right++
		case results[i].Err == nil && results[i].Verdict.Known:
			wrong++
		}
	}
	return right, wrong
}

// WriteMatrix writes the confusion matrix in Markdown: a row for each injected cause, with how often each was named.
func WriteMatrix(w io.Writer, results []Result) error {
	var order []bottleneck.Cause
	named := map[bottleneck.Cause][]string{} // injected -> what was named
	strengths := map[bottleneck.Cause][]string{}
	for i := range results {
		r := &results[i]
		if !slices.Contains(order, r.Injected) {
			order = append(order, r.Injected)
		}
		named[r.Injected] = append(named[r.Injected], r.Named())
		strengths[r.Injected] = append(strengths[r.Injected], r.Strength)
	}
	if _, err := fmt.Fprintf(w, "| injected | strength | named |\n|---|---|---|\n"); err != nil {
		return fmt.Errorf("writing the matrix: %w", err)
	}
	for _, c := range order {
		if _, err := fmt.Fprintf(w, "| %s | %s | %s |\n", c, join(strengths[c]), join(counted(named[c]))); err != nil {
			return fmt.Errorf("writing the matrix: %w", err)
		}
	}
	return nil
}

func join(list []string) (text string) {
	for i, one := range list {
		if i > 0 {
			text += "; "
		}
		text += one
	}
	return text
}

// counted lists each word once, with how often it is there, the first one first.
func counted(words []string) (out []string) {
	for i, word := range words {
		if slices.Index(words, word) != i {
			continue
		}
		n := 0
		for _, other := range words {
			if other == word {
				n++
			}
		}
		out = append(out, fmt.Sprintf("%s %d×", word, n))
	}
	return out
}
