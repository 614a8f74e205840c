// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package testcluster

import "syscall"

// ChildAttributes returns the attributes of a child process: Ctrl-C at the terminal reaches only its parent, which then
// ends the child in order. This system has no signal at the death of a parent: a child of a killed parent stays.
func ChildAttributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
