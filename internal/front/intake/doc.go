// Package intake bounds the memory that requests in flight take, however many clients send them and
// however slowly.
//
// A [Budget] counts the bytes of all bodies that have been admitted. A body is admitted before it is
// read: by its announced length, once its head has shown an acceptable access key. Small bodies have
// a part of the budget to themselves, so that large ones never hold them up. They are admitted
// without an access key only while half of their part is free, so strangers never take more than the
// other half. A body without room waits for [Patience] and is then refused with an error after which
// clients retry.
package intake
