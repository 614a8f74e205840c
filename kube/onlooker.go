// SPDX-License-Identifier: Apache-2.0

package kube

import "context"

// Onlooker is a loop that is told of the cluster and decides nothing: rights to list and watch are all it needs.
type Onlooker struct {
	Informers *Informers
	Loop      *Loop
}

// Run looks on until ctx ends. All goroutines have ended when it returns.
func (o *Onlooker) Run(ctx context.Context) {
	o.Loop.told.heard = &o.Informers.heard
	o.Informers.Start(ctx)
	defer o.Informers.Stop()
	o.Loop.Run(ctx)
}
