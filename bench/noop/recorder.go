// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"k8s.io/client-go/kubernetes"
)

// Recorder records the writes of a scheduler while a workload runs, and the changes by others. A nil recorder records
// nothing.
type Recorder struct {
	dir  string
	log  string // of the API server
	seen *observations
	// surplus: namespace/name -> a pod that replaced another in a steady state. Their number and times differ from
	// run to run, so their scripts cannot be replayed. steady: their namespaces.
	surplus map[string]bool
	steady  map[string]bool
}

// NewRecorder makes a recorder whose files are in dir.
func NewRecorder(dir string) *Recorder { return &Recorder{dir: dir, seen: newObservations()} }

// Watch follows nodes and pods until ctx ends. It calls listed when both have been listed.
func (r *Recorder) Watch(ctx context.Context, client kubernetes.Interface, listed func()) {
	r.seen.watch(ctx, client, listed)
}

// Prepare makes the API server of a cluster log writes.
func (r *Recorder) Prepare(o *testcluster.Options) error {
	if r == nil {
		return nil
	}
	args, log, err := auditArgs(r.dir)
	r.log = log
	o.Args = append(slices.Clone(o.Args), args...)
	return err
}

// Tidy removes the API server's log, which is many times larger than the recording.
func (r *Recorder) Tidy() { _ = os.Remove(r.log) }

// writtenAfter is the time without an event after which a scheduler is assumed to have finished its writes.
const writtenAfter = time.Second

// Finish waits until the scheduler has finished its writes, and records the pods of a steady state.
func (r *Recorder) Finish(ctx context.Context, client kubernetes.Interface, w *ops.Watch, plan *workload.Plan) error {
	r.surplus, r.steady = map[string]bool{}, map[string]bool{}
	for index, op := range plan.Ops {
		create, is := op.(*workload.CreatePods)
		if !is || create.Steady == 0 {
			continue
		}
		n := 0
		for _, p := range w.Pods(nil, nil) {
			if p.Op != index {
				continue
			}
			r.steady[p.Namespace] = true
			if n++; n > create.Count {
				r.surplus[p.Namespace+"/"+p.Name] = true
			}
		}
	}
	events, since := int64(-1), time.Now()
	for {
		n, err := testbed.CountEvents(ctx, client)
		if err != nil {
			return err
		}
		if n != events {
			events, since = n, time.Now()
		}
		if time.Since(since) > writtenAfter {
			return nil
		}
		if err := testbed.Pause(ctx, writtenAfter/10); err != nil {
			return err
		}
	}
}

// Recording returns the recording. It must be called after the run.
func (r *Recorder) Recording() (Recording, error) {
	writes, err := readAudit(r.log)
	if err != nil {
		return Recording{}, err
	}
	out, err := recordingOf(writes, r.seen)
	if err != nil {
		return Recording{}, err
	}
	for key := range r.surplus { // order: each by itself
		delete(out.Scripts, key)
	}
	out.Steady = r.steady
	return out, nil
}
