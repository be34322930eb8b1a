//go:build !unix

package descriptor

func limit() int { return unlimited }
