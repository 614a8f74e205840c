// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
)

// Wants waits until the pods of the case are where they should be. want: pod -> the nodes where it may be (0, or
// several with | between), * for any node, ? for any verdict, - for none, or, with ! before it, parts of what the
// pod's condition says about why it is not placed, with & between. A pod that must wait is checked again a little
// later: a rejection must persist.
func (g *Ground) Wants(ctx context.Context, want map[string]string) error {
	refused := false
	g.mu.Lock()
	for pod, w := range want {
		if strings.HasPrefix(w, "!") || w == "-" {
			refused = true
		} else if w != "?" {
			g.placed[pod] = true
		}
	}
	g.mu.Unlock()
	// A placed pod stays on its node; if that is wrong, waiting does not help.
	var final error
	err := eventually(ctx, "each pod has its verdict", func() string {
		wrong, forGood := g.differ(ctx, want)
		if forGood {
			final = errors.New(wrong)
			return ""
		}
		return wrong
	})
	if err = errors.Join(final, err); err != nil || !refused {
		return err
	}
	pause(ctx, lasting)
	if wrong, _ := g.differ(ctx, want); wrong != "" {
		return fmt.Errorf("a moment after all was as it should be: %s", wrong)
	}
	return nil
}

// lasting is how long a rejection is observed.
const lasting = 300 * time.Millisecond

// WantsAll waits for the same of many pods: prefix0, prefix1 and so on.
func (g *Ground) WantsAll(ctx context.Context, prefix string, n int, each string) error {
	want := make(map[string]string, n)
	for i := range n {
		want[fmt.Sprint(prefix, i)] = each
	}
	return g.Wants(ctx, want)
}

// differ returns how the pods differ from the expectation, and whether that is final.
func (g *Ground) differ(ctx context.Context, want map[string]string) (what string, forGood bool) {
	pods, err := g.Pods(ctx)
	if err != nil {
		return err.Error(), false
	}
	var wrong []string
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := "is not there"
		p, there := pods[name]
		if there {
			w = differs(want[name], g.short(p.Spec.NodeName), why(&p))
		}
		if g.placed[name] {
			g.unplaced[name] = w != ""
		}
		if w != "" {
			wrong = append(wrong, "pod "+name+" "+w)
			forGood = forGood || p.Spec.NodeName != ""
		}
	}
	if len(wrong) > 3 {
		wrong = append(wrong[:3], fmt.Sprintf("and %d more", len(wrong)-3))
	}
	return strings.Join(wrong, "; "), forGood
}

func differs(want, node, message string) string {
	is := fmt.Sprintf("is on node %q, want %s", node, want)
	if node == "" {
		is = fmt.Sprintf("waits because of %q, want %s", message, want)
	}
	part, refused := strings.CutPrefix(want, "!")
	switch {
	case want == "-":
		if node != "" || message != "" {
			return is
		}
	case want == "?":
		if node == "" && message == "" {
			return "has no verdict"
		}
	case refused && node != "":
		return is
	case refused:
		for _, p := range strings.Split(part, "&") {
			if !strings.Contains(message, p) {
				return is
			}
		}
		if message == "" {
			return is
		}
	case node == "", want != "*" && !slices.Contains(strings.Split(want, "|"), node):
		return is
	}
	return ""
}

// why returns the reason in a pod's condition why it is not placed.
func why(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// Pods are those of the case: name -> pod.
func (g *Ground) Pods(ctx context.Context) (map[string]v1.Pod, error) {
	list, err := g.Client.CoreV1().Pods(g.Name).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	out := make(map[string]v1.Pod, len(list.Items))
	for _, p := range list.Items {
		out[p.Name] = p
	}
	return out, nil
}

// unaffected is how long a pod that is not part of the case may wait.
const unaffected = 15 * time.Second

// others is the namespace of ordinary pods, which have nodes of their own.
const others = "others"

// Healthy creates an ordinary pod in another namespace, waits until it is placed, and returns how long that took.
func (g *Ground) Healthy(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, unaffected)
	defer cancel()
	p := newPod(others, "", others)
	p.GenerateName = g.Name + "-"
	began := time.Now()
	api := g.Client.CoreV1().Pods(others)
	p, err := api.Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		return 0, Unjudged("create an ordinary pod: %w", err)
	}
	err = eventually(ctx, "a pod that is not part of the case is placed", func() string {
		now, err := api.Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if now.Spec.NodeName == "" {
			return "it waits: " + why(now)
		}
		return ""
	})
	took := time.Since(began)
	zero := int64(0)
	_ = api.Delete(context.WithoutCancel(ctx), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	return took, err
}

// Findings returns the findings of the checker on the current state of the cluster.
func (g *Ground) Findings(ctx context.Context) ([]string, error) {
	nodes, err := g.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, Unjudged("list nodes: %w", err)
	}
	pods, err := g.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, Unjudged("list pods: %w", err)
	}
	found := checker.Sums(nodes.Items, pods.Items)
	return slices.DeleteFunc(found, func(f string) bool {
		for node := range g.shrunk {
			if strings.HasPrefix(f, "node "+node+": ") {
				return true
			}
		}
		return false
	}), nil
}
