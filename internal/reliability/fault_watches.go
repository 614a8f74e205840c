// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/internal/fault"
)

// faultyWatches: watch events are late, repeated, out of order, or lost.
func faultyWatches() []Case {
	return []Case{
		{ID: "F7", What: "all watches end three times in a burst because their version is too old", Own: true, Run: faulty(3, tooOld)},
		{ID: "F8", What: "the watch loses the creation of a pod", Own: true, Limit: healing, Run: faulty(1, lostPod)},
		{ID: "F9", What: "the watch loses the growth of a node", Own: true, Limit: healing, Run: faulty(1, lostNode)},
		{ID: "F10", What: "the watches repeat every third event and bring every fifth late", Own: true, Run: faulty(3, outOfOrder)},
		{ID: "F11", What: "the watches stall for 12 s while another scheduler binds, their connections stay", Own: true, Run: faulty(2, standstill)},
		{ID: "F12", What: "a slow watch that the API server closes after 30 MB", Own: true, Limit: healing, Run: faulty(2, slowWatch)},
		{ID: "F34", What: "three events of pods cannot be decoded", Own: true, Run: faulty(2, garbled)},
	}
}

// healing is the maximum duration of a case in which no event shows the scheduler that it missed one.
const healing = 150 * time.Second

func tooOld(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	for i := range 3 {
		prefix := fmt.Sprint("stage", i, "-")
		err := g.during(ctx, prefix, 30, func() error {
			if n := proxy.EndWatches("*", fault.Expired); n == 0 {
				return Unjudged("no watch was open")
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := g.WantsAll(ctx, prefix, 30, "*"); err != nil {
			return err
		}
	}
	return g.full(ctx, 3*perNode-90)
}

// lostPod: the API server has a pod whose watch event the scheduler never received.
func lostPod(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	lost := proxy.OnEvent(fault.Event{Resource: "pods", Type: "ADDED", Namespace: g.Name, Name: "lost", Times: 1, Twist: fault.Drop()})
	if err := g.Create(ctx, g.Pod("lost")); err != nil {
		return err
	}
	if err := lost.Await(ctx); err != nil {
		return unjudged{err}
	}
	if err := g.burst(ctx, "p", 10); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "p", 10, "*"); err != nil {
		return err
	}
	return g.Wants(ctx, map[string]string{"lost": "*"})
}

// lostNode: a node has become big enough for a pod that waits, and the scheduler did not receive the event.
func lostNode(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	if err := g.Create(ctx, g.Pod("big", asks("cpu", "6"))); err != nil {
		return err
	}
	if err := g.Wants(ctx, map[string]string{"big": "!Insufficient cpu"}); err != nil {
		return err
	}
	lost := proxy.OnEvent(fault.Event{Resource: "nodes", Type: "MODIFIED", Name: g.Name + "-0", Times: 1, Twist: fault.Drop()})
	if err := g.PatchNode(ctx, "0", `{"status":{"capacity":{"cpu":"8"},"allocatable":{"cpu":"8"}}}`, "status"); err != nil {
		return err
	}
	if err := lost.Await(ctx); err != nil {
		return unjudged{err}
	}
	return g.Wants(ctx, map[string]string{"big": "0"})
}

func outOfOrder(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	for _, r := range []string{"pods", "nodes"} {
		proxy.OnEvent(fault.Event{Resource: r, Every: 5, Twist: fault.Hold(3, 500*time.Millisecond)})
		proxy.OnEvent(fault.Event{Resource: r, Every: 3, Twist: fault.Duplicate()})
	}
	if err := g.burst(ctx, "p", 60); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "p", 60, "*"); err != nil {
		return err
	}
	var half []string
	for i := range 30 {
		half = append(half, fmt.Sprint("p", i))
	}
	if err := g.Delete(ctx, half...); err != nil {
		return err
	}
	if err := g.burst(ctx, "q", 60); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "q", 60, "*"); err != nil {
		return err
	}
	return g.full(ctx, 3*perNode-90)
}

// standstill: changes during the stall are processed afterwards.
func standstill(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	ice := proxy.Freeze("*")
	if err := ice.Await(ctx); err != nil {
		return unjudged{err}
	}
	if err := g.burst(ctx, "foreign", 30, foreign); err != nil {
		return err
	}
	for i := range 30 {
		if err := g.bindTo(ctx, fmt.Sprint("foreign", i), "0"); err != nil {
			return err
		}
	}
	if err := g.burst(ctx, "p", 20); err != nil {
		return err
	}
	pause(ctx, 12*time.Second)
	ice.Remove()
	if err := g.WantsAll(ctx, "p", 20, "*"); err != nil {
		return err
	}
	return g.full(ctx, 2*perNode-50)
}

// slowWatch changes a pod until there are more events than the API server buffers for a client that does not read.
func slowWatch(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	if err := g.Create(ctx, g.Pod("chatter", foreign)); err != nil {
		return err
	}
	ice := proxy.Freeze("pods")
	if err := ice.Await(ctx); err != nil {
		return unjudged{err}
	}
	const size, times = 100 << 10, 300
	for i := range times {
		body := fmt.Sprintf(`{"metadata":{"annotations":{"chatter":"%d %s"}}}`, i, strings.Repeat("x", size))
		if _, err := g.Client.CoreV1().Pods(g.Name).Patch(ctx, "chatter", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			return Unjudged("patch pod: %w", err)
		}
	}
	if err := g.burst(ctx, "p", 40); err != nil {
		return err
	}
	ice.Remove()
	if err := g.WantsAll(ctx, "p", 40, "*"); err != nil {
		return err
	}
	return g.full(ctx, 2*perNode-40)
}

func garbled(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	rule := proxy.OnEvent(fault.Event{Resource: "pods", Namespace: g.Name, Every: 10, Times: 3, Twist: fault.Garble()})
	if err := g.burst(ctx, "p", 40); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "p", 40, "*"); err != nil {
		return err
	}
	if rule.Hits() == 0 {
		return Unjudged("no event was garbled")
	}
	return g.full(ctx, 2*perNode-40)
}
