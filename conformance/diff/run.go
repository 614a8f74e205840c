// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// MinNodes is the size below which a cluster is not counted.
const MinNodes = 20

// Options of a run.
type Options struct {
	Seed uint64
	// Cases to count.
	Cases int
	Sizes gen.Sizes
	// Plugins of the profiles; nil means those that kumiki has.
	Plugins []scenario.Plugin
	// First is the number of the first cluster, so that a long run can be made in pieces.
	First int
	// Adjust, if not nil, changes a scenario before it is asked.
	Adjust func(*scenario.Scenario)
	// MaxFailures ends the run early. 0 means at the first.
	MaxFailures int
	// Progress is called after each cluster, with counted cases.
	Progress func(r *Report)
}

// Failure is one unexplained difference.
type Failure struct {
	// Scenario whose last ask shows it.
	Scenario *scenario.Scenario
	// Difference is Compare's text.
	Difference string
}

// Report is what a run counted.
type Report struct {
	Options      Options
	Next         int // number of the cluster after the last one
	Clusters     int
	Large        int
	Nodes        int
	Cases        int
	Gated        int
	Infeasible   int
	TwoPlugins   int
	Exceptions   map[string]int // exception name -> cases it covered
	Discarded    map[string]int // reason -> cases made but not counted
	Verdicts     int            // node verdicts compared
	Coverage     *Coverage
	Failures     []Failure
	stoppedEarly bool
}

// Run asks both subjects about generated scenarios until Cases are counted.
// With a nil ours it only counts what would be asked.
func Run(upstream, ours Subject, opt Options) (*Report, error) {
	if opt.Plugins == nil {
		opt.Plugins = gen.DefaultPlugins()
	}
	r := &Report{Options: opt, Exceptions: map[string]int{}, Discarded: map[string]int{}, Coverage: NewCoverage()}
	for r.Next = opt.First; r.Cases < opt.Cases && !r.stoppedEarly; r.Next++ {
		s := gen.MakeWith(opt.Seed, r.Next, opt.Sizes, opt.Plugins)
		if opt.Adjust != nil {
			opt.Adjust(s)
		}
		if err := r.scenario(upstream, ours, s); err != nil {
			return r, fmt.Errorf("%s: %w", s.Name, err)
		}
		if opt.Progress != nil {
			opt.Progress(r)
		}
	}
	return r, nil
}

func (r *Report) scenario(upstream, ours Subject, s *scenario.Scenario) error {
	if len(s.Nodes) < MinNodes {
		r.Discarded["cluster below 20 nodes"] += len(s.Asks)
		return nil
	}
	p, err := load(upstream, ours, s)
	if errors.Is(err, errRefused) {
		if r.Discarded[err.Error()] += len(s.Asks); r.Clusters == 0 && sum(r.Discarded) > 1000 {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	r.Clusters++
	r.Nodes += len(s.Nodes)
	if len(s.Nodes) > 500 {
		r.Large++
	}
	for i := range s.Asks {
		if r.Cases == r.Options.Cases {
			break
		}
		want, d := p.ask(&s.Asks[i], r.Exceptions)
		r.count(view{s, s.Asks[i].Pod, p.objects}, want)
		if d == "" {
			continue
		}
		cut := *s
		cut.Asks = s.Asks[:i+1]
		r.Failures = append(r.Failures, Failure{Scenario: &cut, Difference: d})
		if r.stoppedEarly = len(r.Failures) > r.Options.MaxFailures; r.stoppedEarly {
			break
		}
	}
	return nil
}

func (r *Report) count(v view, o *outcome.Outcome) {
	r.Cases++
	r.Verdicts += len(o.Nodes)
	r.Coverage.Add(v, o)
	if o.Gate != nil {
		r.Gated++
	}
	if o.Infeasible() {
		r.Infeasible++
	}
	if o.Infeasible() && len(o.RejectingPlugins()) >= 2 {
		r.TwoPlugins++
	}
}

func percent(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

// Shortfalls says which promised shares and cells the run did not reach. A run
// of a few hundred cases may miss rare cells; a long one must not.
func (r *Report) Shortfalls(cells bool) []string {
	var out []string
	need := func(what string, got, want float64) {
		if got < want {
			out = append(out, fmt.Sprintf("%s: %.1f %%, wanted at least %.0f %%", what, got, want))
		}
	}
	need("infeasible pods", percent(r.Infeasible, r.Cases), 30)
	need("infeasible pods with two or more rejecting plugins", percent(r.TwoPlugins, r.Cases), 20)
	need("clusters over 500 nodes", percent(r.Large, r.Clusters), 10)
	if cells {
		for _, m := range r.Coverage.Missed() {
			out = append(out, "never hit: "+m)
		}
	}
	if r.Cases >= ManyCases {
		for _, m := range r.Coverage.Short(Enough) {
			out = append(out, fmt.Sprintf("wanted %d hits: %s", Enough, m))
		}
	}
	return out
}

// Print writes the report as text.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %d cases on %d clusters, %d nodes, %d node verdicts\n", r.Options.Seed, r.Cases, r.Clusters, r.Nodes, r.Verdicts)
	fmt.Fprintf(w, "clusters over 500 nodes            %6d  %5.1f %%\n", r.Large, percent(r.Large, r.Clusters))
	fmt.Fprintf(w, "infeasible pods                    %6d  %5.1f %%\n", r.Infeasible, percent(r.Infeasible, r.Cases))
	fmt.Fprintf(w, "  by two or more plugins           %6d  %5.1f %%\n", r.TwoPlugins, percent(r.TwoPlugins, r.Cases))
	fmt.Fprintf(w, "gated pods                         %6d  %5.1f %%\n", r.Gated, percent(r.Gated, r.Cases))
	fmt.Fprintf(w, "exceptions on the reviewed list    %6d\n", len(Exceptions))
	for _, e := range Exceptions {
		fmt.Fprintf(w, "  %-33s%6d  cases\n", e.Name, r.Exceptions[e.Name])
	}
	fmt.Fprintf(w, "ways of asking on the same list    %6d\n", len(Framing))
	fmt.Fprintf(w, "discarded cases                    %6d\n", sum(r.Discarded))
	for _, k := range sortedKeys(r.Discarded) {
		fmt.Fprintf(w, "  %-33s%6d\n", k, r.Discarded[k])
	}
	fmt.Fprintf(w, "unexplained differences            %6d\n\n", len(r.Failures))
	r.Coverage.Print(w)
}

func sum(m map[string]int) int {
	total := 0
	for _, n := range m {
		total += n
	}
	return total
}

func sortedKeys(m map[string]int) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
