// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package wire

// pinning reports whether this system can give a process a core of its own.
const pinning = false

func coresOf() ([]int, error) { return nil, errNoPinning }

func onCore(int, func() error) error { return errNoPinning }

func siblings(int, int) bool { return false }
