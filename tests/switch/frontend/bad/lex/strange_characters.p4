const bit<8> x = 1 $ 2;
const bit<8> y = `3`;
