// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// faultyProcesses: the scheduler or a component that it uses is killed, stopped, or partitioned from it.
func faultyProcesses() []Case {
	// A lease that outlives the restart of an API server: losing it is another case.
	patient := Launch{Lease: 40 * time.Second}
	return []Case{
		{ID: "F5", What: "the API server is killed in a burst and started again", Own: true, Run: faultyAs(patient, 3, dies(testcluster.APIServer))},
		{ID: "F6", What: "etcd is killed in a burst and started again", Own: true, Run: faultyAs(patient, 3, dies(testcluster.Etcd))},
		{ID: "F13", What: "kill -9 between the decision and its bind", Own: true, Run: faulty(2, killedAt(fault.SilentBefore()))},
		{ID: "F14", What: "kill -9 after a bind was applied, before its answer", Own: true, Run: faulty(2, killedAt(fault.SilentAfter()))},
		{ID: "F15", What: "the leader is stopped for longer than its lease and continues beside the next", Own: true, Run: stoppedLeader},
		{ID: "F16", What: "the next leader's watch of pods lags behind the last binds of the one before", Own: true, Run: laggingStandby},
		{ID: "F29a", What: "etcd stalls for 2 s, five times in a burst, as with a slow disk", Own: true, Run: faultyAs(patient, 3, slowDisk)},
		{ID: "F32", What: "a tenth of a CPU, and GOMEMLIMIT=64MiB", Own: true, Run: faultyAs(Launch{Lease: 40 * time.Second, Env: []string{"GOMEMLIMIT=64MiB"}}, 3, starved)},
		{ID: "F33", What: "20 s without a network between scheduler and API server, while pods end", Own: true, Run: faultyAs(Launch{MayDie: true}, 1, parted)},
		{ID: "F35", What: "SIGTERM in the middle of binds", Own: true, Run: faulty(2, terminated)},
	}
}

func dies(role testcluster.Role) func(context.Context, *Ground, *Scheduler, *fault.Proxy) error {
	return func(ctx context.Context, g *Ground, _ *Scheduler, _ *fault.Proxy) error {
		if err := g.burst(ctx, "p", 40); err != nil {
			return err
		}
		if err := errors.Join(g.Cluster.Kill(role), g.Cluster.Restart(role)); err != nil {
			return unjudged{err}
		}
		err := eventually(ctx, "the API server takes pods again", func() string {
			if err := g.Create(ctx, g.Pod("q0")); err != nil {
				return err.Error()
			}
			return ""
		})
		if err != nil {
			return unjudged{err}
		}
		if err := g.WantsAll(ctx, "p", 40, "*"); err != nil {
			return err
		}
		return g.full(ctx, 3*perNode-41)
	}
}

func slowDisk(ctx context.Context, g *Ground, _ *Scheduler, _ *fault.Proxy) error {
	stalls := make(chan error, 1)
	go func() {
		var failed error
		for range 5 {
			failed = errors.Join(failed, g.Cluster.Stop(testcluster.Etcd))
			pause(ctx, 2*time.Second)
			failed = errors.Join(failed, g.Cluster.Cont(testcluster.Etcd))
			pause(ctx, time.Second)
		}
		stalls <- failed
	}()
	err := g.burst(ctx, "p", 80)
	if failed := <-stalls; failed != nil {
		return unjudged{failed}
	}
	if err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "p", 80, "*"); err != nil {
		return err
	}
	return g.full(ctx, 3*perNode-80)
}

// starved lets the scheduler run for 10 ms of every 100.
func starved(ctx context.Context, g *Ground, s *Scheduler, _ *fault.Proxy) error {
	starving, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for starving.Err() == nil {
			s.Signal(syscall.SIGSTOP)
			pause(starving, 90*time.Millisecond)
			s.Signal(syscall.SIGCONT)
			pause(starving, 10*time.Millisecond)
		}
	}()
	err := g.burst(ctx, "p", 80)
	if err == nil {
		err = g.WantsAll(ctx, "p", 80, "*")
	}
	if err == nil {
		_, err = g.Healthy(ctx)
	}
	stop()
	<-ended
	s.Signal(syscall.SIGCONT)
	if err != nil {
		return err
	}
	return g.full(ctx, 3*perNode-80)
}

// killedAt kills the scheduler while binds are in flight; its successor does not know the capacity that they hold.
func killedAt(f fault.Fate) func(context.Context, *Ground, *Scheduler, *fault.Proxy) error {
	return func(ctx context.Context, g *Ground, s *Scheduler, proxy *fault.Proxy) error {
		if err := g.burst(ctx, "before", 20); err != nil {
			return err
		}
		struck := proxy.On(g.binding(f))
		if err := g.burst(ctx, "p", 40); err != nil {
			return err
		}
		if err := struck.Await(ctx); err != nil {
			return err
		}
		s.Kill()
		proxy.Clear()
		if err := s.Start(); err != nil {
			return unjudged{err}
		}
		if err := errors.Join(g.WantsAll(ctx, "p", 40, "*"), g.WantsAll(ctx, "before", 20, "*")); err != nil {
			return err
		}
		return g.full(ctx, 2*perNode-60)
	}
}

// two starts a leader, and a standby behind a separate proxy.
func (g *Ground) two(ctx context.Context) (leader, standby *Scheduler, proxy *fault.Proxy, err error) {
	if leader, err = g.Launch(ctx, Launch{Name: "leader", MayDie: true}); err != nil {
		return nil, nil, nil, err
	}
	if err := g.works(ctx); err != nil {
		return nil, nil, nil, err
	}
	standby, proxy, err = g.behind(ctx, Launch{Name: "standby", MayDie: true})
	return leader, standby, proxy, err
}

// holder returns the holder of the lease.
func (g *Ground) holder(ctx context.Context) string {
	lease, err := g.Client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func (g *Ground) anotherLeads(ctx context.Context, than string) error {
	return eventually(ctx, "another leads", func() string {
		if now := g.holder(ctx); now == "" || now == than {
			return fmt.Sprintf("%q does", now)
		}
		return ""
	})
}

func stoppedLeader(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 3); err != nil {
		return err
	}
	leader, _, _, err := g.two(ctx)
	if err != nil {
		return err
	}
	old := g.holder(ctx)
	if err := g.during(ctx, "old", 50, func() error { leader.Signal(syscall.SIGSTOP); return nil }); err != nil {
		return err
	}
	defer leader.Signal(syscall.SIGCONT)
	if err := g.anotherLeads(ctx, old); err != nil {
		return err
	}
	pause(ctx, 4*time.Second)
	leader.Signal(syscall.SIGCONT)
	if err := g.burst(ctx, "new", 50); err != nil {
		return err
	}
	if err := errors.Join(g.WantsAll(ctx, "old", 50, "*"), g.WantsAll(ctx, "new", 50, "*")); err != nil {
		return err
	}
	return g.full(ctx, 3*perNode-100)
}

// laggingStandby: pods wait for a label of a node. The standby knows them. When it becomes the leader and the label
// is added, it does not know yet that other pods fill the node.
func laggingStandby(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	leader, _, proxy, err := g.two(ctx)
	if err != nil {
		return err
	}
	if err := g.burst(ctx, "late", 10, func(p *v1.Pod) { p.Spec.NodeSelector["open"] = "yes" }); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "late", 10, "!Unschedulable"); err != nil {
		return err
	}
	pause(ctx, time.Second) // both have received it
	lag := proxy.Freeze("pods")
	if err := g.burst(ctx, "p", perNode); err != nil {
		return err
	}
	if err := errors.Join(g.WantsAll(ctx, "p", perNode, "*"), lag.Await(ctx)); err != nil {
		return err
	}
	old := g.holder(ctx)
	leader.Kill()
	if err := g.PatchNode(ctx, "0", `{"metadata":{"labels":{"open":"yes"}}}`, ""); err != nil {
		return err
	}
	if err := g.anotherLeads(ctx, old); err != nil {
		return err
	}
	pause(ctx, 3*time.Second)
	lag.Remove()
	return g.WantsAll(ctx, "late", 10, "!Unschedulable&Insufficient cpu")
}

// parted: pods that ended during the partition have freed their capacity, and pods that were created during it are
// placed there.
func parted(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	if err := g.burst(ctx, "p", perNode); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "p", perNode, "*"); err != nil {
		return err
	}
	if err := g.burst(ctx, "waiting", 10); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "waiting", 10, "!Insufficient cpu"); err != nil {
		return err
	}
	proxy.Part()
	defer proxy.Heal()
	for i := range 20 {
		_, err := g.Client.CoreV1().Pods(g.Name).Patch(ctx, fmt.Sprint("p", i), types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`),
			metav1.PatchOptions{}, "status")
		if err != nil {
			return Unjudged("end pod: %w", err)
		}
	}
	if err := g.burst(ctx, "new", 10); err != nil {
		return err
	}
	pause(ctx, 20*time.Second)
	proxy.Heal()
	if err := errors.Join(g.WantsAll(ctx, "waiting", 10, "*"), g.WantsAll(ctx, "new", 10, "*")); err != nil {
		return err
	}
	return g.full(ctx, 0)
}

// toEnd is the maximum time for a scheduler to end after SIGTERM.
const toEnd = 15 * time.Second

func terminated(ctx context.Context, g *Ground, s *Scheduler, proxy *fault.Proxy) error {
	proxy.On(g.binding(fault.Slow(300 * time.Millisecond)))
	err := g.during(ctx, "p", 60, func() error {
		began := time.Now()
		s.Terminate()
		if took := time.Since(began); took > toEnd {
			return fmt.Errorf("it took %s to end after SIGTERM", took.Round(time.Second))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return unjudged{err}
	}
	if err := g.WantsAll(ctx, "p", 60, "*"); err != nil {
		return err
	}
	return g.full(ctx, 2*perNode-60)
}
