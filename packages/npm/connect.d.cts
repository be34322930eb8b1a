export { connect, Clock, ClockMove, ClockState, ConnectOptions, Endpoint, MoveOptions } from "./index.js";
