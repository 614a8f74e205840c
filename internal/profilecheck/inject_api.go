// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// usualRate is the rate of pods where it is not the cause.
const usualRate = 40

func slowBinds(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	d := time.Duration(between(r, 80, 300)) * time.Millisecond
	g.load(usualRate, nil)
	return d.String(), g.delayBinds(d)
}

// delayBinds lets the scheduler bind through a proxy.
func (g *ground) delayBinds(d time.Duration) error {
	p, err := g.proxy()
	if err == nil && !g.removed {
		p.On(fault.Request{Verb: "create", Resource: "pods", Subresource: "binding", Fate: fault.Slow(d)})
	}
	return err
}

func gateAndLatency(gatedPods, ms int) injection {
	return func(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
		d := time.Duration(between(r, ms, ms+100)) * time.Millisecond
		if err := g.backlog(ctx, gatedPods, gate); err != nil {
			return "", err
		}
		g.load(usualRate, nil)
		return fmt.Sprintf("%d pods, %s", gatedPods, d), g.delayBinds(d)
	}
}

func slowWatch(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	d := time.Duration(between(r, 500, 1500)) * time.Millisecond
	p, err := g.proxy()
	if err == nil && !g.removed {
		g.whenReady(func(context.Context) error {
			p.OnEvent(fault.Event{Resource: "pods", Every: 40, Twist: fault.Stall(d)})
			return nil
		})
	}
	g.load(usualRate, nil)
	return d.String() + " at each 40th event", err
}

func stoppedServer(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	half := time.Duration(between(r, 100, 300)) * time.Millisecond
	if !g.removed {
		g.whenReady(func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for ctx.Err() == nil {
					_ = g.cluster.Stop(testcluster.APIServer)
					time.Sleep(half)
					_ = g.cluster.Cont(testcluster.APIServer)
					time.Sleep(half)
				}
			}()
			g.cleanup(func() {
				cancel()
				<-ended
			})
			return nil
		})
	}
	g.load(usualRate, nil)
	return half.String() + " stopped, then as long not", nil
}

func slowEtcd(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	d := time.Duration(between(r, 80, 200)) * time.Millisecond
	if !g.removed {
		g.whenReady(func(context.Context) error {
			g.etcd.set(d)
			return nil
		})
		g.cleanup(func() { g.etcd.set(0) })
	}
	g.load(usualRate, nil)
	return d.String(), nil
}

func oneSeat(ctx context.Context, g *ground, _ *rand.Rand) (string, error) {
	if !g.removed {
		if err := g.seat(ctx); err != nil {
			return "", err
		}
	}
	return "one seat", g.backlog(ctx, 1500, nil)
}

// seat gives the binds of the scheduler a priority level with one seat.
func (g *ground) seat(ctx context.Context) error {
	one, none, queue := int32(1), int32(0), int32(50)
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "one-seat"},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: &one,
				BorrowingLimitPercent: &none, LendablePercent: &none, LimitResponse: flowcontrolv1.LimitResponse{
					Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 1,
						HandSize: 1, QueueLengthLimit: 10 * queue}}}}}
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "one-seat"},
		Spec: flowcontrolv1.FlowSchemaSpec{MatchingPrecedence: 2, PriorityLevelConfiguration: flowcontrolv1.
			PriorityLevelConfigurationReference{Name: "one-seat"}, Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser,
				User: &flowcontrolv1.UserSubject{Name: "system:kube-scheduler"}}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"create"}, APIGroups: []string{""},
				Resources: []string{"pods/binding"}, Namespaces: []string{"*"}}}}}}}
	api := g.client.FlowcontrolV1()
	if _, err := api.PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a priority level: %w", err)
	}
	g.cleanup(func() {
		_ = api.FlowSchemas().Delete(ctx, "one-seat", metav1.DeleteOptions{})
		_ = api.PriorityLevelConfigurations().Delete(ctx, "one-seat", metav1.DeleteOptions{})
	})
	if _, err := api.FlowSchemas().Create(ctx, schema, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a flow schema: %w", err)
	}
	return nil
}

func lowRate(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	qps := between(r, 4, 15)
	if !g.removed {
		g.setup.qps = qps
	}
	g.load(usualRate, nil)
	return fmt.Sprintf("%d qps, %d pods/s", qps, usualRate), nil
}

// longBackoff lets each other bind fail once, so that its pod backs off although its node is free.
func longBackoff(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	seconds := between(r, 2, 5)
	p, err := g.proxy()
	if err == nil && !g.removed {
		p.On(fault.Request{Verb: "create", Resource: "pods", Subresource: "binding", Every: 2,
			Fate: fault.ErrorBefore(http.StatusForbidden)})
		g.setup.config = fmt.Sprintf("podInitialBackoffSeconds: %d\npodMaxBackoffSeconds: %d\n", seconds, seconds)
	}
	g.load(usualRate/2, nil)
	return fmt.Sprintf("%d s", seconds), err
}

func gate(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/wait"}} }
