// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// soakFault is one kind of fault. It is over when do returns.
type soakFault struct {
	what string
	do   func(ctx context.Context) error
}

// strike injects one fault.
func (k *soaking) strike(ctx context.Context) {
	all := append(k.onTheLine(), k.inTheCluster()...)
	if time.Since(k.began) < k.Duration/2 {
		all = append(all, k.toSchedulers()...)
	}
	f := all[k.random.IntN(len(all))]
	done := SoakFault{Second: k.since(), What: f.what}
	if err := f.do(ctx); err != nil {
		done.Err = err.Error()
	}
	k.report.Faults = append(k.report.Faults, done)
	fmt.Fprintf(k.Progress, "%5.1f min  %s%s\n", done.Second/60, f.what, behind(": ", done.Err))
}

// toSchedulers are faults of the processes that compete for the lease.
func (k *soaking) toSchedulers() []soakFault {
	which := k.random.IntN(len(k.pair))
	one := k.pair[which]
	name := fmt.Sprint("candidate ", which)
	return []soakFault{
		{name + " is killed", func(context.Context) error { return one.Restart() }},
		{name + " is asked to end", func(context.Context) error { one.Terminate(); return one.Start() }},
		{name + " stalls for longer than its lease", func(ctx context.Context) error {
			one.Signal(syscall.SIGSTOP)
			pause(ctx, 7*time.Second)
			one.Signal(syscall.SIGCONT)
			return nil
		}},
	}
}

// inTheCluster are faults of the control plane.
func (k *soaking) inTheCluster() []soakFault {
	again := func(role testcluster.Role) func(context.Context) error {
		return func(context.Context) error { return errors.Join(k.cluster.Kill(role), k.cluster.Restart(role)) }
	}
	stands := func(role testcluster.Role) func(context.Context) error {
		return func(ctx context.Context) error {
			err := k.cluster.Stop(role)
			pause(ctx, 3*time.Second)
			return errors.Join(err, k.cluster.Cont(role))
		}
	}
	return []soakFault{
		{"the API server is killed", again(testcluster.APIServer)},
		{"the API server stalls for 3 s", stands(testcluster.APIServer)},
		{"etcd is killed", again(testcluster.Etcd)},
		{"etcd stalls for 3 s", stands(testcluster.Etcd)},
	}
}

// onTheLine are faults between the schedulers and the API server.
func (k *soaking) onTheLine() []soakFault {
	bind := func(f fault.Fate) fault.Request {
		return fault.Request{Verb: "create", Resource: "pods", Subresource: "binding", Every: 3, Fate: f}
	}
	during := func(d time.Duration, begin func() *fault.Rule) func(context.Context) error {
		return func(ctx context.Context) error {
			rule := begin()
			pause(ctx, d)
			rule.Remove()
			return nil
		}
	}
	on := func(q fault.Request) func() *fault.Rule { return func() *fault.Rule { return k.proxy.On(q) } }
	event := func(e fault.Event) func() *fault.Rule { return func() *fault.Rule { return k.proxy.OnEvent(e) } }
	return []soakFault{
		{"each third bind is refused with 429 for 5 s", during(5*time.Second, on(bind(fault.TooMany(time.Second))))},
		{"each third bind is applied and answered with 500 for 5 s", during(5*time.Second, on(bind(fault.ErrorAfter(500))))},
		{"each third bind is answered with 504 and applied 2 s later, for 5 s", during(5*time.Second, on(bind(fault.AppliedLater(2*time.Second))))},
		{"each third bind is cut before it is applied, for 5 s", during(5*time.Second, on(bind(fault.CutBefore())))},
		{"every request waits for 200 ms, for 5 s", during(5*time.Second, on(fault.Request{Fate: fault.Slow(200 * time.Millisecond)}))},
		{"the events API answers with 500 for 5 s", during(5*time.Second, on(fault.Request{Verb: "create", Resource: "events", Fate: fault.ErrorBefore(500)}))},
		{"the watch of pods stalls for 8 s", during(8*time.Second, func() *fault.Rule { return k.proxy.Freeze("pods") })},
		{"the watch of nodes stalls for 8 s", during(8*time.Second, func() *fault.Rule { return k.proxy.Freeze("nodes") })},
		{"events of pods come twice for 5 s", during(5*time.Second, event(fault.Event{Resource: "pods", Twist: fault.Duplicate()}))},
		{"each seventh event of a pod is overtaken by three others, for 5 s", during(5*time.Second, event(fault.Event{Resource: "pods", Every: 7, Twist: fault.Hold(3, time.Second)}))},
		{"the watch loses three pods", during(5*time.Second, event(fault.Event{Resource: "pods", Type: "ADDED", Times: 3, Twist: fault.Drop()}))},
		{"all watches expire", func(context.Context) error { k.proxy.EndWatches("*", fault.Expired); return nil }},
		{"all watches are severed", func(context.Context) error { k.proxy.EndWatches("*", fault.Severed); return nil }},
		{"the network is parted for 8 s", func(ctx context.Context) error {
			k.proxy.Part()
			pause(ctx, 8*time.Second)
			k.proxy.Heal()
			return nil
		}},
	}
}
