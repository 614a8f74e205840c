// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/extender"
)

// Replayed lets a recording answer in place of the extenders of a configuration. Which pods they take part in
// deciding about, and which of them binds, follows from the configuration. Tell what is returned the answers of each
// cycle; it is nil when there are no extenders.
func Replayed(ctx context.Context, c config.Resolved, to *engine.Config) (*engine.Recorded, error) {
	if len(c.Extenders) == 0 {
		return nil, nil
	}
	extenders := slices.Clone(c.Extenders)
	for i := range extenders {
		extenders[i].TLSConfig = nil // nobody is called, and the files may not be here
	}
	all, err := extender.New(ctx, extenders, nil, nil)
	if err != nil {
		return nil, err
	}
	recorded := &engine.Recorded{Foreign: all}
	for i := range to.Profiles {
		to.Profiles[i].Foreign = recorded
	}
	return recorded, nil
}
