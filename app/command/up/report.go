// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// explained bounds the number of waiting pods that are explained in full.
const explained = 5

// report prints the state of the pods, and returns an error if one that can run does not.
func (o Options) report(ctx context.Context, cfg *rest.Config, s summary, settled bool) error {
	fmt.Fprintf(o.Out, "\n%d pods: %d bound at %.0f pods/s, %d waiting; from seen to bound %s (median), %s (p99)\n\n",
		s.pods, s.bound, s.perSecond, s.waiting, round(s.p50), round(s.p99))
	table := printers.GetNewTabWriter(o.Out)
	fmt.Fprintln(table, "NAMESPACE\tWORKLOAD\tPODS\tBOUND\tRUNNING\tDONE\tFAILED\tNODES")
	for _, w := range s.workloads {
		fmt.Fprintf(table, "%s\t%s/%s\t%d\t%d\t%d\t%d\t%d\t%d\n", w.namespace, w.kind, w.name, w.pods, w.bound,
			w.running, w.done, w.failed, w.nodes)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	var wrong []string
	if !settled {
		wrong = append(wrong, fmt.Sprintf("the pods had not settled after %s", o.Timeout))
	}
	for _, w := range s.failures {
		wrong = append(wrong, fmt.Sprintf("pod %s/%s failed on node %s", w.namespace, w.name, w.node))
	}
	wrong = append(wrong, o.pending(ctx, cfg, s)...)
	if len(wrong) == 0 {
		fmt.Fprintln(o.Out, "\nevery pod that can run does")
		return nil
	}
	fmt.Fprintln(o.Out)
	for _, line := range wrong {
		fmt.Fprintln(o.Out, "wrong: "+line)
	}
	return ErrFailed
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}

// pending prints the scheduler's explanations of waiting pods, and returns what is wrong with them.
func (o Options) pending(ctx context.Context, cfg *rest.Config, s summary) (wrong []string) {
	if len(s.pending) == 0 {
		return nil
	}
	client, err := find(ctx, cfg)
	if err != nil {
		return []string{fmt.Sprintf("asking why pods wait: %v", err)}
	}
	defer client.Close()
	for i, w := range s.pending {
		report, err := client.Pod(ctx, w.namespace, w.name)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("asking why pod %s/%s waits: %v", w.namespace, w.name, err))
			continue
		}
		if i < explained {
			fmt.Fprintln(o.Out)
			if err := text.Pod(o.Out, report, false); err != nil {
				return append(wrong, err.Error())
			}
		}
		// In the demonstration the manifests say which pods wait. With other manifests only the scheduler knows.
		canRun := o.File == "" && !w.expected
		if report.Fit != nil && report.Fit.Feasible > 0 && len(report.Gates) == 0 {
			canRun = true
		}
		if canRun {
			wrong = append(wrong, fmt.Sprintf("pod %s/%s waits, and should not", w.namespace, w.name))
		}
	}
	if more := len(s.pending) - explained; more > 0 {
		fmt.Fprintf(o.Out, "\nand %d more pods wait\n", more)
	}
	return wrong
}

// next prints what to try next.
func (o Options) next(s summary) {
	pod, namespace := "NAME", "default"
	if len(s.pending) > 0 {
		pod, namespace = s.pending[0].name, s.pending[0].namespace
		for _, w := range s.pending {
			if !w.gated {
				pod, namespace = w.name, w.namespace
				break
			}
		}
	}
	fmt.Fprintf(o.Out, `
The cluster runs until Ctrl-C. In another terminal, after the export line above:
  %[1]s why pod/%[2]s -n %[3]s
  %[1]s why node/node-0000
  %[1]s queue -A
  %[1]s queue -w -A
`, o.Self, pod, namespace)
	if o.File == "" {
		kubectl := "kubectl"
		if _, err := exec.LookPath(kubectl); err != nil { // the cluster's program can be it
			kubectl = filepath.Join(filepath.Dir(o.Self), testcluster.BinaryName) + " kubectl"
		}
		fmt.Fprintf(o.Out, `  %[1]s -n demo scale deployment/web --replicas=%[2]d
  %[1]s -n demo patch pod gated --type=json -p '[{"op":"remove","path":"/spec/schedulingGates"}]'
`, kubectl, 20*o.Nodes)
	}
	fmt.Fprintln(o.Err, "press Ctrl-C to remove everything")
}
