// SPDX-License-Identifier: Apache-2.0

package place

// Natively runs f, in which searches ask no foreign code: its answers belong to cycles, where they are recorded.
func (pl *Placer) Natively(f func()) {
	foreign := pl.profile.Foreign
	pl.profile.Foreign = nil
	defer func() { pl.profile.Foreign = foreign }()
	f()
}
