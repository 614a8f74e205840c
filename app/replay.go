// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/recording"
	"github.com/kumiki-scheduler/kumiki/host/extender"
)

// Replayed replaces the extenders of a configuration by a recording of their answers. The configuration determines
// for which pods they are called, and which of them binds. The caller passes the answers of each cycle to the result,
// which is nil without extenders.
func Replayed(ctx context.Context, c config.Resolved, to *engine.Config) (*recording.Foreign, error) {
	if len(c.Extenders) == 0 {
		return nil, nil
	}
	extenders := slices.Clone(c.Extenders)
	for i := range extenders {
		extenders[i].TLSConfig = nil // no extender is called, and the files may not exist here
	}
	all, err := extender.New(ctx, extenders, nil, nil)
	if err != nil {
		return nil, err
	}
	recorded := &recording.Foreign{Foreign: all}
	for i := range to.Profiles {
		withExtenders(&to.Profiles[i], recorded)
	}
	return recorded, nil
}
