// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Health is the state of a scheduler that the server shows.
type Health struct {
	// Lease fails when the lease should have been renewed long ago; nil without leader election.
	Lease healthz.HealthChecker
	// Candidate follows the candidate's own object; nil unless the API server chooses the leader.
	Candidate leaderelection.CacheSyncWaiter
	// Leads reports whether this process has become the leader. Without leader election it always has.
	Leads func() bool
	// Stalled is the time since the last turn of the scheduling loop.
	Stalled func() time.Duration
	// Synced is closed when the engine knows the initial lists.
	Synced <-chan struct{}
	// Pods are the newest records of all pods.
	Pods func() []*cluster.Pod
	// Ending is closed when the process begins to end.
	Ending <-chan struct{}
}

// stalledAfter is how long the loop may stand still before the process is better restarted.
const stalledAfter = time.Minute

func (h Health) checks() (health, live, ready []healthz.HealthChecker) {
	if h.Lease != nil {
		health = append(health, h.Lease)
		ready = append(ready, h.Lease)
	}
	live = append(live, healthz.NamedCheck("scheduling-loop", func(*http.Request) error {
		if still := h.Stalled(); still > stalledAfter {
			return fmt.Errorf("the scheduling loop has stood still for %s", still.Round(time.Second))
		}
		return nil
	}))
	ready = append(ready, healthz.NewShutdownHealthz(h.Ending),
		healthz.NamedCheck("sched-handler-sync", func(*http.Request) error {
			select {
			case <-h.Synced:
				return nil
			default:
				return fmt.Errorf("the initial lists of pods and nodes are not in yet")
			}
		}))
	if h.Candidate != nil {
		ready = append(ready, healthz.NewInformerSyncHealthz(h.Candidate))
	}
	return health, live, ready
}

// ofLeader answers with a handler while this process leads, and with nothing before.
func ofLeader(handler http.Handler, leads func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leads() {
			handler.ServeHTTP(w, r)
		}
	})
}
