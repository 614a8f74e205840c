// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/fault"
)

// faultyRequests: requests of the scheduler fail, or seem to fail.
func faultyRequests() []Case {
	return []Case{
		{ID: "F1a", What: "every third bind is applied and answered with 500", Own: true, Run: faulty(2, everyThirdBind(fault.ErrorAfter(500)))},
		{ID: "F1b", What: "every third bind is applied and its answer never comes", Own: true, Run: faulty(2, everyThirdBind(fault.SilentAfter()))},
		{ID: "F1c", What: "every third bind is applied and the connection closed", Own: true, Run: faulty(2, everyThirdBind(fault.CutAfter()))},
		{ID: "F2a", What: "a bind times out and is applied 3 s later, while another pod needs the capacity", Own: true, Run: lateBind(1)},
		{ID: "F2b", What: "the same, whenever the bind is repeated", Own: true, Run: lateBind(0)},
		{ID: "F3", What: "another scheduler binds the pod first", Own: true, Run: faulty(2, boundByAnother)},
		{ID: "F4", What: "429 with Retry-After to half of all requests, then to all binds for longer than clients try", Own: true, Run: faulty(3, tooMany)},
		{ID: "F18", What: "the Lease API is down and the rest is up", Own: true, Run: faultyAs(Launch{MayDie: true}, 2, noLeases)},
		{ID: "F26", What: "a webhook on binds is down, with failurePolicy Fail", Run: deadWebhook},
		{ID: "F28", What: "the events API answers with 500, then not at all", Own: true, Run: faulty(3, noEvents)},
	}
}

// everyThirdBind fills the nodes while binds that were carried out fail: every pod is placed once, and all capacity
// is used.
func everyThirdBind(f fault.Fate) func(context.Context, *Ground, *Scheduler, *fault.Proxy) error {
	return func(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
		rule := g.binding(f)
		rule.Every = 3
		struck := proxy.On(rule)
		if err := g.burst(ctx, "p", 60); err != nil {
			return err
		}
		if err := errors.Join(g.WantsAll(ctx, "p", 60, "*"), struck.Await(ctx)); err != nil {
			return err
		}
		proxy.Clear()
		return g.full(ctx, 2*perNode-60)
	}
}

// lateBind loses the answer to a pod's bind and carries it out later; 0 times means every time for a while. There is
// capacity for one of two pods.
func lateBind(times int) func(context.Context, *Ground) error {
	const late = 3 * time.Second
	return func(ctx context.Context, g *Ground) error {
		if err := g.Nodes(ctx, 1, cores("1")); err != nil {
			return err
		}
		_, proxy, err := g.behind(ctx, Launch{})
		if err != nil {
			return err
		}
		if err := g.works(ctx); err != nil {
			return err
		}
		rule := g.binding(fault.AppliedLater(late))
		rule.Name, rule.Times = "late", times
		struck := proxy.On(rule)
		if err := g.Create(ctx, g.Pod("late", asks("cpu", "1"))); err != nil {
			return err
		}
		if err := struck.Await(ctx); err != nil {
			return err
		}
		if err := g.Create(ctx, g.Pod("second", asks("cpu", "1"))); err != nil {
			return err
		}
		pause(ctx, late+2*time.Second)
		proxy.Clear()
		return g.oneOf(ctx, "late", "second")
	}
}

// oneOf requires that one of two pods is placed and that the other keeps a condition with the reason.
func (g *Ground) oneOf(ctx context.Context, a, b string) error {
	both := false
	look := func() string {
		pods, err := g.Pods(ctx)
		if err != nil {
			return err.Error()
		}
		first, second := pods[a], pods[b]
		switch {
		case first.Spec.NodeName != "" && second.Spec.NodeName != "":
			both = true
			return ""
		case first.Spec.NodeName != "" && why(&second) != "", second.Spec.NodeName != "" && why(&first) != "":
			return ""
		}
		return fmt.Sprintf("%s is on %q (%s), %s on %q (%s)", a, first.Spec.NodeName, why(&first), b, second.Spec.NodeName, why(&second))
	}
	if err := eventually(ctx, "one of two pods is placed", look); err != nil {
		return err
	}
	pause(ctx, lasting)
	w := look()
	if both {
		w = fmt.Sprintf("both %s and %s are placed, and there is capacity for one", a, b)
	}
	if w != "" {
		return errors.New(w)
	}
	return nil
}

// boundByAnother makes another scheduler bind pods to node 1 whose binds are in flight: the capacity that was
// reserved for them becomes free.
func boundByAnother(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	struck := proxy.On(g.binding(fault.Slow(time.Second)))
	if err := g.burst(ctx, "p", 10); err != nil {
		return err
	}
	if err := struck.Await(ctx); err != nil {
		return err
	}
	for i := range 10 {
		if err := g.bindTo(ctx, fmt.Sprint("p", i), "1"); err != nil {
			return err
		}
	}
	pause(ctx, time.Second)
	proxy.Clear()
	if err := g.WantsAll(ctx, "p", 10, "1"); err != nil {
		return err
	}
	return g.full(ctx, 2*perNode-10)
}

// tooMany: every pod is placed in the end; of the waiting pods, those of higher priority first.
func tooMany(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	half := fault.Request{Every: 2, Fate: fault.TooMany(time.Second)}
	for _, r := range []string{"pods", "nodes", "events"} {
		half.Resource = r
		proxy.On(half)
	}
	if err := g.burst(ctx, "half", 40); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "half", 40, "*"); err != nil {
		return err
	}
	proxy.Clear()
	proxy.On(g.binding(fault.TooMany(time.Second)))
	if err := g.burst(ctx, "all", 40); err != nil {
		return err
	}
	pause(ctx, 13*time.Second) // a client of client-go tries ten times
	if n, err := g.countBound(ctx, "all"); n > 0 || err != nil {
		return Unjudged("%d pods were bound although every bind was refused (%v)", n, err)
	}
	proxy.Clear()
	if err := g.WantsAll(ctx, "all", 40, "*"); err != nil {
		return err
	}
	return g.full(ctx, 3*perNode-80)
}

// noLeases: a scheduler that cannot renew the lease may end; when leases can be written again, pods are placed again.
func noLeases(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	struck := proxy.On(fault.Request{Resource: "leases", Fate: fault.ErrorBefore(http.StatusInternalServerError)})
	if err := g.burst(ctx, "p", 40); err != nil {
		return err
	}
	pause(ctx, 8*time.Second) // twice what the lease lasts
	if err := struck.Await(ctx); err != nil {
		return err
	}
	proxy.Clear()
	if err := g.WantsAll(ctx, "p", 40, "*"); err != nil {
		return err
	}
	return g.full(ctx, 2*perNode-40)
}

// deadWebhook: no pod of the case can be bound until the webhook is removed; other pods are not affected.
func deadWebhook(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	url, fail, none, seconds := "https://127.0.0.1:1/", admissionv1.Fail, admissionv1.SideEffectClassNone, int32(1)
	api := g.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "dead.reliability.example", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, FailurePolicy: &fail,
			SideEffects: &none, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: g.Name}},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}}}},
		}},
	}
	if _, err := api.Create(ctx, hook, metav1.CreateOptions{}); err != nil {
		return Unjudged("create webhook: %w", err)
	}
	remove := func(ctx context.Context) error { return api.Delete(ctx, g.Name, metav1.DeleteOptions{}) }
	pause(ctx, time.Second) // the API server reads its webhooks now and then
	err := g.burst(ctx, "p", 10)
	if err == nil {
		pause(ctx, 3*time.Second)
		_, err = g.Healthy(ctx)
	}
	have, countErr := g.countBound(ctx, "p")
	if err := errors.Join(err, countErr, remove(ctx)); err != nil {
		return err
	}
	if have > 0 {
		return Unjudged("%d pods were bound past the webhook", have)
	}
	if err := g.WantsAll(ctx, "p", 10, "*"); err != nil {
		return err
	}
	return g.full(ctx, perNode-10)
}

// noEvents: placements do not depend on events.
func noEvents(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	for i, f := range []fault.Fate{fault.ErrorBefore(http.StatusInternalServerError), fault.SilentBefore()} {
		struck := proxy.On(fault.Request{Resource: "events", Fate: f})
		prefix := fmt.Sprint("stage", i, "-")
		if err := g.burst(ctx, prefix, 50); err != nil {
			return err
		}
		err := within(ctx, unaffected, func(ctx context.Context) error { return g.WantsAll(ctx, prefix, 50, "*") })
		if err != nil {
			return err
		}
		if err := struck.Await(ctx); err != nil {
			return unjudged{err}
		}
		struck.Remove()
	}
	return g.full(ctx, 3*perNode-100)
}
