// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// Summary counts results.
type Summary struct {
	// Right results name the injected cause first, Wrong ones another one.
	All, Right, Wrong, NotKnown, Failed int
	// Gains were compared, Held of them as well as is asked for. For Unknown ones nothing was predicted.
	Gains, Held, Unknown int
}

// Summarize counts results.
func Summarize(results []Result) (s Summary) {
	for i := range results {
		r := &results[i]
		s.All++
		switch {
		case r.Right():
			s.Right++
		case r.Wrong():
			s.Wrong++
		case r.Named() == failed:
			s.Failed++
		default:
			s.NotKnown++
		}
		switch {
		case r.Gain == nil:
		case r.Gain.Unknown != "":
			s.Unknown++
		default:
			s.Gains++
			if r.Gain.Holds() {
				s.Held++
			}
		}
	}
	return s
}

// String returns the counts as a sentence.
func (s Summary) String() string {
	return fmt.Sprintf("Of %d injections, the cause is named first in %d, another one in %d, \"not known\" is the "+
		"answer in %d, and %d failed. Of %d gains, %d are from %.1f to %.1f of the prediction, or above a lower "+
		"bound; %d more are not predicted.", s.All, s.Right, s.Wrong, s.NotKnown, s.Failed, s.Gains, s.Held, leastRatio,
		mostRatio, s.Unknown)
}

// latest returns the last result of each injection: a failed one may have been made again.
func latest(results []Result) (list []Result) {
	for _, r := range results {
		i := slices.IndexFunc(list, func(other Result) bool {
			return other.Scheduler == r.Scheduler && other.Name == r.Name && other.Seed == r.Seed
		})
		if i >= 0 {
			list[i] = r
		} else {
			list = append(list, r)
		}
	}
	return list
}

// WriteMatrix writes the confusion matrix of each scheduler in Markdown: a row for each case, with how often each cause
// was named, and the ratios of measured and predicted gains.
func WriteMatrix(w io.Writer, results []Result) error {
	results = latest(results)
	var b strings.Builder
	b.WriteString(identity(results))
	for _, scheduler := range schedulersOf(results) {
		list := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Scheduler != scheduler })
		fmt.Fprintf(&b, "### %s\n\n| injected | strength by seed | named | measured gain / predicted |\n", scheduler)
		b.WriteString("|---|---|---|---|\n")
		for _, c := range Cases() {
			of := slices.DeleteFunc(slices.Clone(list), func(r Result) bool { return r.Name != c.Name })
			if len(of) == 0 {
				continue
			}
			slices.SortFunc(of, func(a, b Result) int { return int(int64(a.Seed) - int64(b.Seed)) })
			fmt.Fprintf(&b, "| `%s`: %s | %s | %s | %s |\n", c.Name, c.What, strengths(of), counted(of), ratios(of))
		}
		fmt.Fprintf(&b, "\n%s\n\n", Summarize(list))
		writeMissing(&b, scheduler == kumikiName)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the matrix: %w", err)
	}
	return nil
}

// identity says of which programs results are, if they were reanalysed: then they are not those of a check.
func identity(results []Result) string {
	var list []string
	for i := range results {
		r := &results[i]
		text := fmt.Sprintf("Reanalysed by program %s: profiles that programs %s recorded.\n\n", r.Rules, r.Programs)
		if r.Rules != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, "")
}

// writeMissing writes which causes are not injected.
func writeMissing(b *strings.Builder, kumiki bool) {
	missing := NotInjected(kumiki)
	if len(missing) == 0 {
		return
	}
	by := map[string][]string{} // reason -> causes
	var reasons []string
	for c := range bottleneck.Cause(bottleneck.Causes) {
		if why := missing[c]; why != "" {
			if by[why] == nil {
				reasons = append(reasons, why)
			}
			by[why] = append(by[why], "`"+c.String()+"`")
		}
	}
	fmt.Fprintf(b, "Not injected:\n")
	for _, why := range reasons {
		fmt.Fprintf(b, "- %s: %s\n", strings.Join(by[why], ", "), why)
	}
	b.WriteString("\n")
}

func schedulersOf(results []Result) (list []string) {
	for i := range results {
		if !slices.Contains(list, results[i].Scheduler) {
			list = append(list, results[i].Scheduler)
		}
	}
	return list
}

func strengths(results []Result) string {
	var list []string
	for i := range results {
		if !slices.Contains(list, results[i].Strength) {
			list = append(list, results[i].Strength)
		}
	}
	return strings.Join(list, "; ")
}

// counted lists what was named, with how often, the first one first.
func counted(results []Result) string {
	var order []string
	times := map[string]int{} // what was named -> how often
	for i := range results {
		named := results[i].Named()
		if times[named] == 0 {
			order = append(order, named)
		}
		times[named]++
	}
	for i, named := range order {
		order[i] = fmt.Sprintf("%s %d of %d", named, times[named], len(results))
	}
	return strings.Join(order, "; ")
}

func ratios(results []Result) string {
	var list []string
	for i := range results {
		g := results[i].Gain
		switch b := results[i].Baseline; {
		case b != nil:
			list = append(list, b.String())
		case g == nil:
			list = append(list, "–")
		case g.Unknown != "":
			list = append(list, "not predicted")
		case g.none():
			list = append(list, fmt.Sprintf("no change predicted, %.2f of before", g.Measured/g.Before))
		case g.AtLeast:
			list = append(list, fmt.Sprintf("%.2f (lower bound)", g.Ratio()))
		default:
			list = append(list, fmt.Sprintf("%.2f", g.Ratio()))
		}
	}
	return strings.Join(list, ", ")
}
