// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// priorities makes two classes of the case, GROUND-mid and GROUND-high; pods without a class are below them.
func (g *Ground) priorities(ctx context.Context) error {
	for name, value := range map[string]int32{"mid": 500, "high": 1000} { // order: of no meaning
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: g.Name + "-" + name}, Value: value}
		if _, err := g.Client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return Unjudged("create priority class: %w", err)
		}
		g.Cleanup(func(ctx context.Context) error {
			return g.Client.SchedulingV1().PriorityClasses().Delete(ctx, class.Name, metav1.DeleteOptions{})
		})
	}
	return nil
}

func (g *Ground) ranked(class string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.PriorityClassName = g.Name + "-" + class }
}

func (g *Ground) onNode(name string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.NodeName = g.Name + "-" + name }
}

// refusesToDie: the victim stays, because the kubelets hang and its grace period is an hour. The preemptor keeps
// waiting for its capacity and evicts no other pod, and no pod of lower priority takes the rest of the node. When the
// victim is gone at last, the preemptor is placed.
func refusesToDie(ctx context.Context, g *Ground) error {
	if err := errors.Join(g.Nodes(ctx, 2), g.priorities(ctx)); err != nil {
		return err
	}
	if err := g.Cluster.Stop(testcluster.Nodes); err != nil {
		return unjudged{err}
	}
	g.Cleanup(func(context.Context) error { return g.Cluster.Cont(testcluster.Nodes) })
	anHour := int64(3600)
	err := g.Create(ctx,
		g.Pod("victim", asks("cpu", "3"), g.onNode("0"), func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = &anHour }),
		g.Pod("bystander", asks("cpu", "3"), g.onNode("1"), g.ranked("mid")))
	if err != nil {
		return err
	}
	if err := g.Create(ctx, g.Pod("high", asks("cpu", "3500m"), g.ranked("high"))); err != nil {
		return err
	}
	waits := func() string {
		pods, err := g.Pods(ctx)
		if err != nil {
			return err.Error()
		}
		high, victim, bystander := pods["high"], pods["victim"], pods["bystander"]
		if g.short(high.Status.NominatedNodeName) != "0" || victim.DeletionTimestamp == nil || bystander.DeletionTimestamp != nil || bystander.UID == "" {
			return fmt.Sprintf("nominated is %q, the victim goes: %t, the bystander is there: %t", high.Status.NominatedNodeName, victim.DeletionTimestamp != nil,
				bystander.UID != "" && bystander.DeletionTimestamp == nil)
		}
		return ""
	}
	if err := eventually(ctx, "the pod has its victim", waits); err != nil {
		return err
	}
	thief := g.Pod("thief", asks("cpu", "700m"), g.ranked("mid"), func(p *v1.Pod) { p.Spec.NodeSelector[v1.LabelHostname] = g.Name + "-0" })
	if err := g.Play(ctx, []*v1.Pod{thief}, map[string]string{"thief": "!Insufficient cpu", "high": "!Insufficient cpu"}); err != nil {
		return err
	}
	for i := range 10 { // each change wakes the pod
		if err := g.PatchNode(ctx, "1", fmt.Sprintf(`{"metadata":{"labels":{"change":"%d"}}}`, i), ""); err != nil {
			return err
		}
		pause(ctx, 500*time.Millisecond)
		if wrong := waits(); wrong != "" {
			return fmt.Errorf("while the victim stays: %s", wrong)
		}
	}
	if err := g.Delete(ctx, "victim"); err != nil {
		return err
	}
	return g.Wants(ctx, map[string]string{"high": "0", "bystander": "1", "thief": "!Insufficient cpu"})
}
