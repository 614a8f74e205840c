// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Case injects one cause.
type Case struct {
	Cause bottleneck.Cause
	// What says how it is injected.
	What string
	// Kumiki is set if kube-scheduler has no such cause.
	Kumiki bool
	run    func(context.Context, *ground, *rand.Rand) (strength string, err error)
}

// NotInjected are the causes that this check cannot inject: cause -> reason.
var NotInjected = map[bottleneck.Cause]string{
	bottleneck.Plugin:            "needs a binary with a plugin that spins",
	bottleneck.Hints:             "needs thousands of waiting pods, more than a check of seconds can create",
	bottleneck.Preemption:        "needs thousands of victims, more than a check of seconds can create",
	bottleneck.GangSearch:        "needs large gangs, more than a check of seconds can create",
	bottleneck.Intake:            "needs thousands of node changes per second",
	bottleneck.Observers:         "needs a slow disk, for which the kernel must be asked as root",
	bottleneck.SchedulerCPU:      "it is the rest that no other cause explains",
	bottleneck.Lock:              "needs a scheduler with a fault; no rule names it yet",
	bottleneck.LostWakeUp:        "needs a scheduler with a fault",
	bottleneck.CPUStarvation:     "needs a quota of a cgroup, or a machine without other load",
	bottleneck.DecidedAheadLimit: "the limit is fixed",
	bottleneck.Etcd:              "needs a proxy between the API server and etcd",
	bottleneck.Prepare:           "needs a volume controller that can be slowed down",
	bottleneck.SessionPeriod:     "metrics do not show sessions",
	bottleneck.Backoff:           "pods in backoff are tried as soon as the loop is idle, so they do not wait",
	bottleneck.Victims:           "no preemption took place on the check's cluster without a kubelet; not clarified",
	bottleneck.Pause:             "needs leader election; the rule is checked by unit tests",
	bottleneck.GC:                "a loop that is busy for seconds needs more pods than the check can create",
}

// Cases are all injections.
func Cases() []Case {
	return []Case{
		{bottleneck.Arrivals, "a creator that is slow", false, slowCreator},
		{bottleneck.APILatency, "a proxy delays binds", false, slowBinds},
		{bottleneck.WatchDelivery, "a proxy delays the watch of pods", false, slowWatch},
		{bottleneck.APIServerCPU, "the API server is stopped half of the time", false, stoppedServer},
		{bottleneck.APF, "one seat in the scheduler's priority level", false, oneSeat},
		{bottleneck.ClientLimit, "clientConnection.qps", false, lowRate},
		{bottleneck.InFlightLimit, "inFlightBinds: 2", true, twoInFlight},
		{bottleneck.ForeignCode, "an extender that is slow", false, slowExtender},
		{bottleneck.Gate, "pods with a scheduling gate", false, gated},
		{bottleneck.NoCapacity, "pods that request more than any node has", false, tooLarge},
	}
}

// between draws a whole number.
func between(r *rand.Rand, lo, hi int) int { return lo + r.IntN(hi-lo+1) }

func slowCreator(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	rate := between(r, 5, 30)
	g.load(ctx, rate, nil)
	return fmt.Sprintf("%d pods/s", rate), g.record(ctx, "", nil, "")
}

func slowBinds(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	p, err := g.proxy()
	if err != nil {
		return "", err
	}
	d := time.Duration(between(r, 80, 300)) * time.Millisecond
	p.On(fault.Request{Verb: "create", Resource: "pods", Subresource: "binding", Fate: fault.Slow(d)})
	g.load(ctx, 40, nil)
	return d.String(), g.record(ctx, "", nil, p.Kubeconfig())
}

func slowWatch(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	p, err := g.proxy()
	if err != nil {
		return "", err
	}
	d := time.Duration(between(r, 500, 1500)) * time.Millisecond
	g.onReady = func() {
		p.OnEvent(fault.Event{Resource: "pods", Every: 40, Twist: fault.Stall(d)})
	}
	g.load(ctx, 40, nil)
	return d.String() + " of each 40 events", g.record(ctx, "", nil, p.Kubeconfig())
}

func stoppedServer(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	half := time.Duration(between(r, 100, 300)) * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	g.onReady = func() {
		go func() {
			defer close(stopped)
			for ctx.Err() == nil {
				_ = g.cluster.Stop(testcluster.APIServer)
				time.Sleep(half)
				_ = g.cluster.Cont(testcluster.APIServer)
				time.Sleep(half)
			}
		}()
	}
	g.load(ctx, 40, nil)
	err := g.record(ctx, "", nil, "")
	cancel()
	if err == nil {
		<-stopped
	}
	return half.String() + " stopped, then as long not", err
}

func oneSeat(ctx context.Context, g *ground, _ *rand.Rand) (string, error) {
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
		return "", err
	}
	if _, err := api.FlowSchemas().Create(ctx, schema, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	defer func() {
		_ = api.FlowSchemas().Delete(ctx, "one-seat", metav1.DeleteOptions{})
		_ = api.PriorityLevelConfigurations().Delete(ctx, "one-seat", metav1.DeleteOptions{})
	}()
	if err := g.backlog(ctx, 1500, nil); err != nil {
		return "", err
	}
	return "one seat", g.record(ctx, "", nil, "")
}

func lowRate(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	g.qps = between(r, 4, 15)
	g.load(ctx, 40, nil)
	return fmt.Sprintf("%d qps, 40 pods/s", g.qps), g.record(ctx, "", nil, "")
}

func twoInFlight(ctx context.Context, g *ground, _ *rand.Rand) (string, error) {
	if err := g.backlog(ctx, 1800, nil); err != nil {
		return "", err
	}
	const limit = `
- schedulerName: default-scheduler
  pluginConfig: [{name: Kumiki, args: {inFlightBinds: 2}}]
`
	return "2", g.record(ctx, "profiles:"+limit, nil, "")
}

func slowExtender(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	d := time.Duration(between(r, 40, 120)) * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(d)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `[]`)
	}))
	defer server.Close()
	g.load(ctx, 40, nil)
	config := fmt.Sprintf("extenders: [{urlPrefix: %q, prioritizeVerb: score, weight: 1, nodeCacheCapable: true, "+
		"httpTimeout: 10s}]\n", server.URL)
	return d.String(), g.record(ctx, config, nil, "")
}

func gated(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	n := between(r, 30, 150)
	err := g.backlog(ctx, n, func(p *v1.Pod) {
		p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/wait"}}
	})
	if err != nil {
		return "", err
	}
	g.load(ctx, 10, nil)
	return fmt.Sprintf("%d pods", n), g.record(ctx, "", nil, "")
}

func tooLarge(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	n := between(r, 30, 150)
	err := g.backlog(ctx, n, func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("5000")
	})
	if err != nil {
		return "", err
	}
	g.load(ctx, 10, nil)
	return fmt.Sprintf("%d pods", n), g.record(ctx, "", nil, "")
}
