// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// fault lets the scheduler begin with a cause in its environment, and returns the strength.
func (g *ground) fault(c bottleneck.Cause, strength string) string {
	g.setup.injected = true
	if !g.removed {
		g.setup.fault = c.String() + "=" + strength
	}
	return strength
}

// spinning lets the loop compute, or wait for a lock, for some milliseconds at a time.
func spinning(c bottleneck.Cause, lo, hi int) injection {
	return func(_ context.Context, g *ground, r *rand.Rand) (string, error) {
		g.load(usualRate, nil)
		return g.fault(c, fmt.Sprintf("%dms", between(r, lo, hi))), nil
	}
}

// spinningHints lets pods wait that no node can take, each with an amount of its own, while pods come and go.
func spinningHints(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	var n atomic.Int64
	err := g.backlog(ctx, 5, func(p *v1.Pod) {
		request(p, fmt.Sprint(5000+n.Add(1)))
	})
	g.load(usualRate, nil)
	g.churn = true
	return g.fault(bottleneck.Hints, fmt.Sprintf("%dms", between(r, 50, 90))), err
}

func request(p *v1.Pod, cpu string) {
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse(cpu)
}

func spinningPreemption(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	no := int64(0)
	if err := g.fill(ctx, 8, &no); err != nil {
		return "", err
	}
	g.load(usualRate/2, func(p *v1.Pod) {
		p.Spec.PriorityClassName = highPriority
		request(p, "950m")
	})
	return g.fault(bottleneck.Preemption, fmt.Sprintf("%dms", between(r, 60, 120))), nil
}

func spinningGangs(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	var n atomic.Int64
	g.setup.config = "profiles:\n- schedulerName: default-scheduler\n" +
		"  pluginConfig: [{name: Kumiki, args: {gangs: {annotation: \"On\"}}}]\n"
	g.load(usualRate, func(p *v1.Pod) {
		p.Annotations = map[string]string{"pod_group": fmt.Sprint("gang-", (n.Add(1)-1)/2), "pod_group_size": "2"}
	})
	return g.fault(bottleneck.GangSearch, fmt.Sprintf("%dms", between(r, 60, 120))), nil
}

func slowExtender(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	d := time.Duration(between(r, 40, 120)) * time.Millisecond
	if !g.removed {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(d)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `[]`)
		}))
		g.cleanup(server.Close)
		g.setup.config = fmt.Sprintf("extenders: [{urlPrefix: %q, prioritizeVerb: score, weight: 1, "+
			"nodeCacheCapable: true, httpTimeout: 10s}]\n", server.URL)
	}
	g.load(usualRate, nil)
	return d.String(), nil
}

// collecting lets the garbage collector run at each hundredth of the heap, on one processor. The heap of kumiki is too
// small for that to take long, so it gets a list of millions of links.
func collecting(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	strength := "GOGC=1"
	g.setup.env = []string{"GOMAXPROCS=1"}
	if !g.removed {
		g.setup.env = append(g.setup.env, strength)
	}
	if g.scheduler.Name == kumikiName {
		strength += ", " + g.fault(bottleneck.GC, fmt.Sprint(between(r, 1000, 2000)*1000)) + " links"
	}
	return strength, g.backlog(ctx, 1800, nil)
}

// starved starts neighbours on the CPU to which the scheduler is bound.
func starved(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	n := between(r, 4, 8)
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("needs Linux")
	}
	g.setup.wrapper = []string{"nice", "-n", "5", "taskset", "-c", "0"}
	if !g.removed {
		g.whenReady(func(ctx context.Context) error {
			for range n {
				cmd := exec.CommandContext(ctx, "taskset", "-c", "0", "sh", "-c", "while :; do :; done")
				cmd.SysProcAttr = testcluster.ChildAttributes(syscall.SIGKILL)
				if err := testcluster.Spawn(cmd); err != nil {
					return fmt.Errorf("starting a neighbour: %w", err)
				}
				g.cleanup(func() {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
				})
			}
			return nil
		})
	}
	g.load(usualRate, nil)
	return strconv.Itoa(n) + " neighbours", nil
}

const kumikiProfile = "profiles:\n- schedulerName: default-scheduler\n  pluginConfig: [{name: Kumiki, args: {%s}}]\n"

func twoInFlight(ctx context.Context, g *ground, _ *rand.Rand) (string, error) {
	if !g.removed {
		g.setup.config = fmt.Sprintf(kumikiProfile, "inFlightBinds: 2")
	}
	return "2", g.backlog(ctx, 1800, nil)
}

func twoAhead(ctx context.Context, g *ground, _ *rand.Rand) (string, error) {
	g.fault(bottleneck.DecidedAheadLimit, "2")
	return "2", g.backlog(ctx, 1800, nil)
}

func longSessions(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	seconds := between(r, 2, 4)
	if !g.removed {
		g.setup.config = fmt.Sprintf(kumikiProfile, fmt.Sprintf("cycle: sessions, sessionPeriod: %ds", seconds))
	}
	g.load(usualRate, nil)
	return fmt.Sprintf("%d s", seconds), nil
}

func lostWakeUps(_ context.Context, g *ground, r *rand.Rand) (string, error) {
	g.load(usualRate, nil)
	return g.fault(bottleneck.LostWakeUp, fmt.Sprintf("%dms", between(r, 900, 1800))), nil
}

// otherLeader lets another process hold the lease.
func otherLeader(ctx context.Context, g *ground, r *rand.Rand) (string, error) {
	rate := between(r, 10, usualRate)
	g.load(rate, nil)
	if g.removed {
		return fmt.Sprintf("%d pods/s", rate), nil
	}
	other, seconds, now := "another-process", int32(3600), metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: g.namespace, Namespace: "kube-system"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, RenewTime: &now,
			AcquireTime: &now}}
	api := g.client.CoordinationV1().Leases("kube-system")
	if _, err := api.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("creating the lease: %w", err)
	}
	g.cleanup(func() { _ = api.Delete(ctx, g.namespace, metav1.DeleteOptions{}) })
	g.setup.lease = g.namespace
	return fmt.Sprintf("%d pods/s", rate), nil
}
