// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
)

// Follower is a loop that follows the cluster and decides nothing: rights to list and watch are all it needs.
type Follower struct {
	Informers *intake.Informers
	Loop      *Loop
}

// Health is the state that a server shows of this loop. ending is closed when the process begins to end.
func (o *Follower) Health(ending <-chan struct{}) serve.Health { return o.Loop.health(ending) }

// Run looks on until ctx ends. All goroutines have ended when it returns.
func (o *Follower) Run(ctx context.Context) {
	o.Loop.tally.Watches = o.Informers
	o.Informers.Start(ctx)
	defer o.Informers.Stop()
	o.Loop.Run(ctx)
}
