// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// machines: architecture as Go names it -> as ELF does.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// standsAlone refuses a binary that could not start in an image that holds nothing else: one of another architecture, or
// one that wants a dynamic linker, which is what Go makes of package net where cgo is on.
func standsAlone(file string, platform *v1.Platform) error {
	if platform.OS != "linux" {
		return nil
	}
	machine, known := machines[platform.Architecture]
	if !known {
		return fmt.Errorf("%s: images for %s are not made here", file, platform)
	}
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	defer f.Close()
	if f.Machine != machine {
		return fmt.Errorf("%s is for %s, not for %s", file, f.Machine, platform)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s wants a dynamic linker; build it with CGO_ENABLED=0", file)
		}
	}
	return nil
}
