// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/sim/defrag"
	"github.com/kumiki-scheduler/kumiki/sim/scenario"
)

// defragging is a call of kumiki defrag.
type defragging struct {
	io      streams
	offline offline
	find    finder
	out     output
	shape   string
	count   int
	most    int
}

func newDefragCommand(io streams, plugins app.Plugins) *cobra.Command {
	d := &defragging{io: io, offline: offline{plugins: plugins}}
	c := &cobra.Command{
		Use:   "defrag --from CAPTURE|--offline --for SHAPE",
		Short: "Plan moves of running pods after which more gangs of a shape fit",
		Long: `Plan which running pods to move, in which order and to which nodes, so that more gangs of a shape
fit. It is a plan only: nothing is evicted, and nothing is written to the cluster.

SHAPE is what one pod requests, with the number of pods of a gang before it: 64xnvidia.com/gpu=8,cpu=16. Pods without a
controller, of DaemonSets, of gangs, and those whose disruption budgets allow no eviction stay where they are. One pod
is moved at a time. The plan is carried out in a simulated cluster before it is printed: the scheduler must accept each
target, and must then place the gangs.

The number of moves is printed beside a number with fewer than which it cannot be done. Exit 1 if there is no plan.`,
		Example: `  kumiki defrag --from monday.tape --for 8xnvidia.com/gpu=8
  kumiki defrag --offline --for cpu=30,memory=100Gi --count 5`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return d.run(c.Context()) },
	}
	d.find.addFlags(c)
	d.offline.addFlags(c)
	d.out.addFlag(c)
	f := c.Flags()
	f.StringVar(&d.shape, "for", "", "shape of the gangs, as [PODSx]RESOURCE=AMOUNT[,RESOURCE=AMOUNT]")
	f.IntVar(&d.count, "count", 0, "how many gangs are to fit (default: one more than now)")
	f.IntVar(&d.most, "max-moves", 50, "most moves of a plan")
	return c
}

var shapeForm = regexp.MustCompile(`^(?:([0-9]+)x)?(.+)$`)

// maxGang bounds the number of pods of a gang.
const maxGang = 100_000

// parseShape parses [PODSx]RESOURCE=AMOUNT[,…].
func parseShape(text string) (pods int, requests v1.ResourceList, err error) {
	form := shapeForm.FindStringSubmatch(text)
	if form == nil {
		return 0, nil, errors.New("name the shape of the gangs: --for 64xnvidia.com/gpu=8,cpu=16")
	}
	pods = 1
	if form[1] != "" {
		if pods, err = strconv.Atoi(form[1]); err != nil || pods < 1 || pods > maxGang {
			return 0, nil, fmt.Errorf("--for: a gang has from 1 to %d pods, not %s", maxGang, form[1])
		}
	}
	requests = v1.ResourceList{}
	for _, part := range strings.Split(form[2], ",") {
		name, amount, is := strings.Cut(part, "=")
		q, err := apiresource.ParseQuantity(amount)
		_, twice := requests[v1.ResourceName(name)]
		switch {
		case !is || name == "":
			return 0, nil, fmt.Errorf("--for: %q is not RESOURCE=AMOUNT", part)
		case err != nil:
			return 0, nil, fmt.Errorf("--for: %s: %q is no amount: %w", name, amount, err)
		case q.Sign() <= 0:
			return 0, nil, fmt.Errorf("--for: %s must be more than 0, is %s", name, amount)
		case twice:
			return 0, nil, fmt.Errorf("--for: %s is there twice", name)
		}
		requests[v1.ResourceName(name)] = q
	}
	return pods, requests, nil
}

func (d *defragging) run(ctx context.Context) error {
	p, err := d.problem(ctx)
	if err != nil {
		return err
	}
	plan, err := p.Find()
	if err != nil && !errors.Is(err, defrag.ErrNoPlan) {
		return fmt.Errorf("defrag: %w", err)
	}
	if shown := d.out.print(d.io.Out, plan, func(bool) error { return d.show(plan, err != nil) }); shown != nil {
		return shown
	}
	if err != nil {
		return fmt.Errorf("defrag: %w", err)
	}
	return nil
}

// problem reads the cluster.
func (d *defragging) problem(ctx context.Context) (*defrag.Problem, error) {
	size, requests, err := parseShape(d.shape)
	switch {
	case err != nil:
	case d.offline.from == "" && !d.offline.on:
		err = errors.New("name a capture with --from FILE, or list the cluster with --offline")
	case d.count < 0 || d.count > maxGang:
		err = fmt.Errorf("--count must be from 0 to %d, is %d", maxGang, d.count)
	case d.most < 0 || d.most > 1000:
		err = fmt.Errorf("--max-moves must be from 0 to 1000, is %d", d.most)
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("defrag: %w", err)}
	}
	c, err := simulatedConfig(d.offline.plugins, d.offline.configFile)
	if err != nil {
		return nil, usageError{fmt.Errorf("defrag: %w", err)}
	}
	snap := &scenario.Snapshot{}
	if d.offline.from != "" {
		if snap, err = readSnapshot(d.offline.from, d.offline.plugins); err != nil {
			return nil, usageError{fmt.Errorf("defrag: %w", err)}
		}
	} else {
		events, err := d.offline.list(ctx, &d.find, c)
		if err != nil {
			return nil, err
		}
		for _, ev := range events {
			snap.Add(ev)
		}
	}
	p := &defrag.Problem{At: snap.At, Objects: snap.Objects(), Nodes: snap.Nodes(), Size: size, Count: d.count,
		MaxMoves: d.most, Unit: unitOf(requests)}
	for _, pod := range snap.Pods() {
		if pod.NodeName != "" {
			p.Pods = append(p.Pods, pod)
		}
	}
	p.Make, err = stepper(d.offline.plugins, c, append(namesOf(p.Pods), p.Unit.Spec.SchedulerName))
	return p, err
}

// unitOf returns a pod of the gangs. It evicts nothing.
func unitOf(requests v1.ResourceList) *cluster.Pod {
	never := v1.PreemptNever
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceDefault, Name: "defrag"}}
	p.Spec.SchedulerName, p.Spec.PreemptionPolicy = v1.DefaultSchedulerName, &never
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests}}}
	return convert.NewIntake().Pod(p)
}

func (d *defragging) show(p defrag.Plan, failed bool) error {
	out := d.io.Out
	if failed {
		fmt.Fprintf(out, "%d of %s fit now; after at most %d moves, %d\n", p.Now, d.shape, d.most, max(p.Now, p.After))
	} else {
		fmt.Fprintf(out, "%d of %s fit now, %d after %d moves\n", p.Now, d.shape, p.After, len(p.Moves))
	}
	switch {
	case failed:
	case len(p.Moves) == 0:
	case p.Proved():
		fmt.Fprintf(out, "fewer moves cannot do it\n")
	default:
		fmt.Fprintf(out, "the fewest moves are between %d and %d\n", p.AtLeast, len(p.Moves))
	}
	fmt.Fprintf(out, "%d pods may be moved", p.Movable)
	for _, why := range sortedKeys(p.Fixed) {
		fmt.Fprintf(out, "; %d stay: %s", p.Fixed[why], why)
	}
	fmt.Fprintln(out)
	if len(p.Moves) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "MOVE\tPOD\tFROM\tTO")
	for i, m := range p.Moves {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", i+1, m.Pod.Key(), m.From, m.To)
	}
	return table.Flush()
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
